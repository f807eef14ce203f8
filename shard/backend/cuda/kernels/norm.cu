#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/portable.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr unsigned kNormThreads = 256;
constexpr unsigned kHeadThreads = 64;

template <class T>
__device__ void NormalizeRow(T* in, const T* add, const T* weight, T* out, int width, float eps) {
  float squares = 0.0f;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    float value = ToFloat(in[i]);
    if (add != nullptr) {
      value = Rounded<T>(value + ToFloat(add[i]));
      in[i] = FromFloat<T>(value);
    }
    squares += value * value;
  }
  const float scale = rsqrtf(BlockReduce(squares, Sum{}) / static_cast<float>(width) + eps);
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    out[i] = FromFloat<T>(Rounded<T>(ToFloat(in[i]) * scale) * ToFloat(weight[i]));
  }
}

template <class T>
__global__ void AddRmsNormKernel(NormArgs args) {
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * args.width;
  const T* add = static_cast<const T*>(args.add);
  NormalizeRow(static_cast<T*>(args.in) + begin, add == nullptr ? nullptr : add + begin,
               static_cast<const T*>(args.weight), static_cast<T*>(args.out) + begin,
               static_cast<int>(args.width), args.eps);
}

template <class T>
__global__ void HeadRmsNormKernel(HeadNormArgs args) {
  const std::uint32_t row_heads = args.shape.heads + 2 * args.shape.kv_heads;
  const std::uint32_t head = blockIdx.y;
  T* values = static_cast<T*>(args.qkv) +
              (std::uint64_t{blockIdx.x} * row_heads + head) * args.shape.head_dim;
  const void* weight = head < args.shape.heads ? args.query_weight : args.key_weight;
  NormalizeRow(values, static_cast<const T*>(nullptr), static_cast<const T*>(weight), values,
               static_cast<int>(args.shape.head_dim), args.eps);
}

}  // namespace

absl::Status AddRmsNorm(const NormArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElement(dtype, [&](auto element) {
    PENSTOCK_LAUNCH(AddRmsNormKernel<decltype(element)>, args.rows, kNormThreads, 0, stream, args);
  });
}

absl::Status HeadRmsNorm(const HeadNormArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  const dim3 grid(args.rows, args.shape.heads + args.shape.kv_heads);
  return ForElement(dtype, [&](auto element) {
    PENSTOCK_LAUNCH(HeadRmsNormKernel<decltype(element)>, grid, kHeadThreads, 0, stream, args);
  });
}

}  // namespace penstock::shard::cuda
