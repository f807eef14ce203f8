// What the kernels share. They are written so that tests can compile them for the host as well:
// there tests/unit/shard/backend/cuda/emulator.h is included first and replaces CUDA.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

#include "common/dtype.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#define PENSTOCK_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  ::penstock::shard::cuda::LaunchKernel(kernel, grid, block, shared_bytes, stream, __VA_ARGS__)
#define PENSTOCK_DYNAMIC_SHARED(name)                           \
  extern __shared__ __align__(16) unsigned char name##_bytes[]; \
  float* name = reinterpret_cast<float*>(name##_bytes)

namespace penstock::shard::cuda {

using Bf16 = __nv_bfloat16;
__device__ inline float ToFloat(Bf16 value) { return __bfloat162float(value); }
template <class T>
__device__ T FromFloat(float value);
template <>
__device__ inline Bf16 FromFloat<Bf16>(float value) {
  return __float2bfloat16_rn(value);
}

bool KernelsOverlap();

// LaunchStatus returns its error.
template <class... Parameters, class... Args>
void LaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                  void* stream, Args... args) {
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &overlap;
  config.numAttrs = KernelsOverlap() ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(args)...);
}

// Programmatic dependent launch (compute capability 9.0 and newer): blocks of the next kernel of
// the stream may begin once all blocks of this one have called LetNextKernelBegin. It then waits in
// WaitForEarlierKernels until the earlier kernels are complete and their writes can be read. Every
// kernel waits, since a kernel that does not could end before an earlier one. A kernel that does
// not let the next one begin does so by its end.
__device__ inline void LetNextKernelBegin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void WaitForEarlierKernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// a - b * c, rounded after the product too, as the host does it.
__device__ inline float MinusProduct(float a, float b, float c) {
  return __fsub_rn(a, __fmul_rn(b, c));
}

// a * b, rounded before anything is added to it.
__device__ inline float Product(float a, float b) { return __fmul_rn(a, b); }

inline absl::Status LaunchStatus() {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(cudaGetErrorString(error));
}

// Lets blocks of `kernel` have this much dynamic shared memory. Above 48 KiB, CUDA requires this
// call.
template <class Kernel>
absl::Status AllowShared(Kernel kernel, std::size_t bytes) {
  const cudaError_t error = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(cudaGetErrorString(error));
}

// 16 bytes that no thread reads again soon: they do not take the place of others in the caches.
// They do not change while the kernel runs.
template <class T>
__device__ T LoadOnce(const void* from) {
  static_assert(sizeof(T) == 16);
  std::uint32_t words[4];
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(from));
  T value;
  memcpy(&value, words, sizeof value);
  return value;
}

}  // namespace penstock::shard::cuda
#endif

namespace penstock::shard::cuda {

__device__ inline float ToFloat(float value) { return value; }
template <>
__device__ inline float FromFloat<float>(float value) {
  return value;
}
// The value as it would be read back from memory.
template <class T>
__device__ float Rounded(float value) {
  return ToFloat(FromFloat<T>(value));
}

// 16 bytes at once; both addresses are multiples of 16.
struct alignas(16) Bytes16 {
  std::uint32_t words[4];
};
__device__ inline void Copy16(void* to, const void* from) {
  *static_cast<Bytes16*>(to) = *static_cast<const Bytes16*>(from);
}

__device__ inline Bytes16 LoadOnce16(const void* from) { return LoadOnce<Bytes16>(from); }

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

// The value of the lane whose number differs in the bits of `step`. Types of several words have
// overloads beside them.
template <class T>
__device__ T FromLane(T value, int step) {
  return __shfl_xor_sync(kAllLanes, value, step);
}

// The same value on every thread of the block, which has whole warps, at most 32 of them. The order
// of additions is a fixed tree.
template <class T, class Combine>
__device__ T BlockReduce(T value, Combine combine) {
  __shared__ T of_warps[kWarp];
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  for (int step = kWarp / 2; step > 0; step /= 2) {
    value = combine(value, FromLane(value, step));
  }
  __syncthreads();  // of_warps may still be read from an earlier call
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  T total = of_warps[0];
  for (int i = 1; i < static_cast<int>(blockDim.x) / kWarp; ++i)
    total = combine(total, of_warps[i]);
  return total;
}

// Calls `body` with a value of the element type.
template <class Body>
absl::Status ForElement(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat32:
      body(float{});
      return LaunchStatus();
    case DType::kBFloat16:
      body(Bf16{});
      return LaunchStatus();
    default:
      return absl::UnimplementedError("the cuda backend computes in float32 and bfloat16");
  }
}

inline std::uint32_t CeilDivide(std::uint64_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((a + b - 1) / b);
}

}  // namespace penstock::shard::cuda
