// CUDA on the host, as far as the kernels of shard/backend/cuda use it: a kernel's source compiles
// as plain C++ after this header, and every thread of a block is a fiber. Blocks run one after
// another; __syncthreads and warp shuffles meet as on a device. Sync points that not all threads
// reach end the test with a message instead of hanging.
//
// What it cannot show: races between threads that happen to work in fiber order, speed, and what
// the real compiler does.
#pragma once

#include <absl/status/status.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
// One block runs at a time on each thread of the host.
#define __shared__ static thread_local

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace penstock::emulator {

struct ThreadView {
  dim3 thread;
  dim3 block;
  dim3 block_size;
};
// The view of the fiber that runs now.
const ThreadView& Now();

void Launch(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

// Enqueues work. It runs at once, is kept during a capture, or, if lazy, runs when the host waits,
// so that values which the host reads or changes too early are wrong.
void Enqueue(std::function<void()> work);
void SetLazy(bool lazy);
std::size_t EnqueuedSoFar();
// Runs the enqueued work up to this number.
void RunQueued(std::size_t until);
void BeginCapture();
bool Capturing();
std::vector<std::function<void()>> EndCapture();

float* DynamicShared();
void SyncBlock();
// A barrier of all lanes of the warp. Each lane leaves a few bytes, which the others may read until
// the next barrier.
void MeetInWarp(const void* offer, std::size_t bytes);
const void* OfferOf(unsigned lane);

// Asynchronous copies of 16 bytes (zeros if `from` is null) of the running thread. FinishCopies
// makes all of them except those of the newest `open` groups.
void BeginCopy(void* to, const void* from);
void EndCopies();
void FinishCopies(std::size_t open);

}  // namespace penstock::emulator

#define threadIdx (::penstock::emulator::Now().thread)
#define blockIdx (::penstock::emulator::Now().block)
#define blockDim (::penstock::emulator::Now().block_size)
#define PENSTOCK_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)       \
  ::penstock::emulator::Launch(dim3(grid), dim3(block), (shared_bytes), [=] { \
    kernel(__VA_ARGS__);                                                      \
    (void)(stream);                                                           \
  })
#define PENSTOCK_DYNAMIC_SHARED(name) float* const name = ::penstock::emulator::DynamicShared()

inline void __syncthreads() { ::penstock::emulator::SyncBlock(); }

inline void __syncwarp() { ::penstock::emulator::MeetInWarp(nullptr, 0); }

template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  ::penstock::emulator::MeetInWarp(&value, sizeof value);
  std::memcpy(&value, ::penstock::emulator::OfferOf(static_cast<unsigned>(lane)), sizeof value);
  return value;
}
template <class T>
T __shfl_xor_sync(unsigned all, T value, int mask) {
  return __shfl_sync(all, value, static_cast<int>(threadIdx.x % 32) ^ mask);
}

inline float rsqrtf(float value) { return 1.0f / std::sqrt(value); }

namespace penstock::shard::cuda {

struct Bf16 {
  std::uint16_t bits = 0;
};
inline float ToFloat(Bf16 value) {
  const std::uint32_t wide = std::uint32_t{value.bits} << 16;
  float result;
  std::memcpy(&result, &wide, sizeof result);
  return result;
}
template <class T>
T FromFloat(float value);
template <>
inline Bf16 FromFloat<Bf16>(float value) {
  std::uint32_t wide;
  std::memcpy(&wide, &value, sizeof wide);
  if (value != value) return {0x7fff};
  return {static_cast<std::uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16)};
}

inline float MinusProduct(float a, float b, float c) { return a - b * c; }
inline float Product(float a, float b) { return a * b; }

// Kernels run one after another.
inline void LetNextKernelBegin() {}
inline void WaitForEarlierKernels() {}

template <class T>
T LoadOnce(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline absl::Status LaunchStatus() { return absl::OkStatus(); }

// No block has more of it on an A100.
template <class Kernel>
absl::Status AllowShared(Kernel, std::size_t bytes) {
  return bytes <= 163 << 10 ? absl::OkStatus() : absl::InternalError("too much shared memory");
}

}  // namespace penstock::shard::cuda
