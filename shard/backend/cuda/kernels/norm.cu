#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/vectors.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr unsigned kNormThreads = 512;
constexpr unsigned kHeadThreads = 64;

// The residual is written once and read again from the caches: each byte comes from memory once.
template <int kCount, class T>
__device__ void NormalizeRow(T* in, const T* add, const T* weight, T* out, int width, float eps) {
  const int step = static_cast<int>(blockDim.x) * kCount;
  float squares = 0.0f;
  for (int at = threadIdx.x * kCount; at < width; at += step) {
    float values[kCount];
    Load<kCount>(in + at, values);
    if (add != nullptr) {
      float added[kCount];
      Load<kCount>(add + at, added);
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = Rounded<T>(values[i] + added[i]);
      Store<kCount>(in + at, values);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) squares += values[i] * values[i];
  }
  const float scale = rsqrtf(BlockReduce(squares, Sum{}) / static_cast<float>(width) + eps);
  for (int at = threadIdx.x * kCount; at < width; at += step) {
    float values[kCount], weights[kCount];
    Load<kCount>(in + at, values);
    Load<kCount>(weight + at, weights);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = Rounded<T>(values[i] * scale) * weights[i];
    Store<kCount>(out + at, values);
  }
}

template <class T, int kCount>
__global__ void __launch_bounds__(kNormThreads) AddRmsNormKernel(NormArgs args) {
  WaitForEarlierKernels();
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * args.width;
  const T* add = static_cast<const T*>(args.add);
  NormalizeRow<kCount>(static_cast<T*>(args.in) + begin, add == nullptr ? nullptr : add + begin,
                       static_cast<const T*>(args.weight), static_cast<T*>(args.out) + begin,
                       static_cast<int>(args.width), args.eps);
}

template <class T, int kCount>
__global__ void __launch_bounds__(kNormThreads) AddLayerNormKernel(NormArgs args) {
  WaitForEarlierKernels();
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * args.width;
  const T* add = args.add == nullptr ? nullptr : static_cast<const T*>(args.add) + begin;
  T* in = static_cast<T*>(args.in) + begin;
  T* out = static_cast<T*>(args.out) + begin;
  const int width = static_cast<int>(args.width);
  const int step = static_cast<int>(blockDim.x) * kCount;
  float sum = 0.0f;
  for (int at = threadIdx.x * kCount; at < width; at += step) {
    float values[kCount];
    Load<kCount>(in + at, values);
    if (add != nullptr) {
      float added[kCount];
      Load<kCount>(add + at, added);
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = Rounded<T>(values[i] + added[i]);
      Store<kCount>(in + at, values);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum += values[i];
  }
  const float mean = BlockReduce(sum, Sum{}) / static_cast<float>(width);
  float squares = 0.0f;
  for (int at = threadIdx.x * kCount; at < width; at += step) {
    float values[kCount];
    Load<kCount>(in + at, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) squares += (values[i] - mean) * (values[i] - mean);
  }
  const float scale = rsqrtf(BlockReduce(squares, Sum{}) / static_cast<float>(width) + args.eps);
  for (int at = threadIdx.x * kCount; at < width; at += step) {
    float values[kCount], weights[kCount], biases[kCount];
    Load<kCount>(in + at, values);
    Load<kCount>(static_cast<const T*>(args.weight) + at, weights);
    Load<kCount>(static_cast<const T*>(args.bias) + at, biases);
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      values[i] = (values[i] - mean) * scale * weights[i] + biases[i];
    Store<kCount>(out + at, values);
  }
}

template <class T, int kCount>
__global__ void __launch_bounds__(kHeadThreads) HeadRmsNormKernel(HeadNormArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t row_heads = args.shape.heads + 2 * args.shape.kv_heads;
  const std::uint32_t head = blockIdx.y;
  T* values = static_cast<T*>(args.qkv) +
              (std::uint64_t{blockIdx.x} * row_heads + head) * args.shape.head_dim;
  const void* weight = head < args.shape.heads ? args.query_weight : args.key_weight;
  NormalizeRow<kCount>(values, static_cast<const T*>(nullptr), static_cast<const T*>(weight),
                       values, static_cast<int>(args.shape.head_dim), args.eps);
}

}  // namespace

absl::Status AddRmsNorm(const NormArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    PENSTOCK_LAUNCH((AddRmsNormKernel<decltype(element), decltype(count)::value>), args.rows,
                    kNormThreads, 0, stream, args);
  });
}

absl::Status AddLayerNorm(const NormArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    PENSTOCK_LAUNCH((AddLayerNormKernel<decltype(element), decltype(count)::value>), args.rows,
                    kNormThreads, 0, stream, args);
  });
}

absl::Status HeadRmsNorm(const HeadNormArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  const dim3 grid(args.rows, args.shape.heads + args.shape.kv_heads);
  return ForElements(dtype, args.shape.head_dim, [&](auto element, auto count) {
    PENSTOCK_LAUNCH((HeadRmsNormKernel<decltype(element), decltype(count)::value>), grid,
                    kHeadThreads, 0, stream, args);
  });
}

}  // namespace penstock::shard::cuda
