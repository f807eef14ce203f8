#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/vectors.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr unsigned kThreads = 256;

// Blocks of kThreads threads, one for each kCount elements of a row, for each row: a step of one
// row keeps several multiprocessors busy.
template <int kCount>
dim3 GridOf(std::uint32_t rows, std::uint32_t width) {
  return dim3(rows, CeilDivide(width, kThreads * kCount));
}

// The first of the thread's elements in its row.
template <int kCount>
__device__ std::uint32_t Column() {
  return (blockIdx.y * blockDim.x + threadIdx.x) * kCount;
}

template <class T, int kCount>
__global__ void EmbedKernel(EmbedArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  const std::int32_t newest = args.newest == nullptr ? -1 : args.newest[blockIdx.x];
  const std::int32_t token = newest < 0 ? args.tokens[blockIdx.x] : args.samples[newest];
  const std::int32_t index = token - args.first;
  float values[kCount] = {};
  if (index >= 0 && index < args.count) {
    Load<kCount>(
        static_cast<const T*>(args.table) + static_cast<std::uint64_t>(index) * args.width + at,
        values);
  }
  Store<kCount>(static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width + at, values);
}

template <class T, int kCount>
__global__ void SelectRowsKernel(SelectArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  float values[kCount];
  Load<kCount>(static_cast<const T*>(args.in) +
                   static_cast<std::uint64_t>(args.chosen[blockIdx.x]) * args.width + at,
               values);
  Store<kCount>(static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width + at, values);
}

template <class T, int kCount>
__global__ void SiluMulKernel(GateArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  const T* row = static_cast<const T*>(args.in) + std::uint64_t{blockIdx.x} * args.width * 2;
  float gate[kCount], up[kCount];
  Load<kCount>(row + at, gate);
  Load<kCount>(row + args.width + at, up);
#pragma unroll
  for (int i = 0; i < kCount; ++i) up[i] *= Rounded<T>(gate[i] / (1.0f + expf(-gate[i])));
  Store<kCount>(static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width + at, up);
}

template <class T, int kCount>
__global__ void GeluKernel(GeluArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * args.width + at;
  float values[kCount];
  Load<kCount>(static_cast<const T*>(args.in) + begin, values);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float x = values[i];
    const float phi = args.tanh ? tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x))
                                : erff(x * 0.70710678118654752f);
    values[i] = 0.5f * x * (1.0f + phi);
  }
  Store<kCount>(static_cast<T*>(args.out) + begin, values);
}

// Between elements and floats, kCount elements a thread.
template <class In, class Out, int kCount>
__global__ void ConvertKernel(const In* in, Out* out, std::uint64_t count) {
  WaitForEarlierKernels();
  const std::uint64_t at = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount;
  if (at >= count) return;
  constexpr int kStep = kCount < 4 ? kCount : 4;  // four floats are 16 bytes
  float values[kCount];
  if constexpr (sizeof(In) <= sizeof(Out)) {
    Load<kCount>(in + at, values);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += kStep) {
      Load<kStep>(in + at + i, reinterpret_cast<float(&)[kStep]>(values[i]));
    }
  }
  if constexpr (sizeof(Out) <= sizeof(In)) {
    Store<kCount>(out + at, values);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += kStep) {
      Store<kStep>(out + at + i, reinterpret_cast<const float(&)[kStep]>(values[i]));
    }
  }
}

}  // namespace

absl::Status Embed(const EmbedArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((EmbedKernel<T, kCount>), GridOf<kCount>(args.rows, args.width), kThreads, 0,
                    stream, args);
  });
}

absl::Status SelectRows(const SelectArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((SelectRowsKernel<T, kCount>), GridOf<kCount>(args.rows, args.width), kThreads,
                    0, stream, args);
  });
}

absl::Status SiluMul(const GateArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((SiluMulKernel<T, kCount>), GridOf<kCount>(args.rows, args.width), kThreads, 0,
                    stream, args);
  });
}

absl::Status Gelu(const GeluArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((GeluKernel<T, kCount>), GridOf<kCount>(args.rows, args.width), kThreads, 0,
                    stream, args);
  });
}

absl::Status Widen(const void* in, float* out, std::uint64_t count, DType dtype, Stream stream) {
  if (count == 0) return absl::OkStatus();
  return ForElements(dtype, count, [&](auto element, auto at_once) {
    using T = decltype(element);
    constexpr int kCount = decltype(at_once)::value;
    PENSTOCK_LAUNCH((ConvertKernel<T, float, kCount>), CeilDivide(count, kThreads * kCount),
                    kThreads, 0, stream, static_cast<const T*>(in), out, count);
  });
}

absl::Status Narrow(const float* in, void* out, std::uint64_t count, DType dtype, Stream stream) {
  if (count == 0) return absl::OkStatus();
  return ForElements(dtype, count, [&](auto element, auto at_once) {
    using T = decltype(element);
    constexpr int kCount = decltype(at_once)::value;
    PENSTOCK_LAUNCH((ConvertKernel<float, T, kCount>), CeilDivide(count, kThreads * kCount),
                    kThreads, 0, stream, in, static_cast<T*>(out), count);
  });
}

}  // namespace penstock::shard::cuda
