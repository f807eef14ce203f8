// CUDA on the host, as far as the kernels of shard/backend/cuda use it: a kernel's source compiles
// as plain C++ behind this header, and every thread of a block is a fiber. Blocks run one after
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
// Of the fiber that runs now.
const ThreadView& Now();

void Launch(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

// Work that would be enqueued: done at once, kept while a capture is on, or, if lazy, done when
// somebody waits for it, which shows what the host reads or changes too early.
void Enqueue(std::function<void()> work);
void SetLazy(bool lazy);
std::size_t EnqueuedSoFar();
// Does what was enqueued, up to so much of it.
void RunQueued(std::size_t until);
void BeginCapture();
bool Capturing();
std::vector<std::function<void()>> EndCapture();

float* DynamicShared();
void SyncBlock();
// The value that `lane ^ mask` of the same warp gave.
std::uint32_t ExchangeInWarp(std::uint32_t value, unsigned mask);

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

inline float __shfl_xor_sync(unsigned, float value, int mask) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = ::penstock::emulator::ExchangeInWarp(bits, static_cast<unsigned>(mask));
  std::memcpy(&value, &bits, sizeof bits);
  return value;
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

inline absl::Status LaunchStatus() { return absl::OkStatus(); }

}  // namespace penstock::shard::cuda
