#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/row_grid.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr unsigned kNormThreads = 512;
constexpr unsigned kHeadThreads = 64;

// One row of a norm.
template <class T>
struct NormRow {
  T* in;
  const T* add;  // null: nothing
  float add_scale;
  const T* weight;  // null: ones
  float weight_offset;
  const T* bias;  // null: zeros
  T* out;
  int width;
  float eps;
};

// Adds to the row where something is to be added, and writes that back.
template <int kCount, class T>
__device__ void LoadSum(const NormRow<T>& row, int at, float (&values)[kCount]) {
  Load<kCount>(row.in + at, values);
  if (row.add == nullptr) return;
  float added[kCount];
  Load<kCount>(row.add + at, added);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = Rounded<T>(values[i] + Rounded<T>(added[i] * row.add_scale));
  }
  Store<kCount>(row.in + at, values);
}

template <int kCount, class T>
__device__ void LoadOr(const T* from, int at, float otherwise, float (&values)[kCount]) {
  if (from != nullptr) return Load<kCount>(from + at, values);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = otherwise;
}

// The residual is written once and read again from the caches: each byte comes from memory once.
template <int kCount, class T>
__device__ void RmsNormalize(const NormRow<T>& row) {
  const int step = static_cast<int>(blockDim.x) * kCount;
  float squares = 0.0f;
  for (int at = threadIdx.x * kCount; at < row.width; at += step) {
    float values[kCount];
    LoadSum<kCount>(row, at, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) squares += values[i] * values[i];
  }
  const float scale = rsqrtf(BlockReduce(squares, Sum{}) / static_cast<float>(row.width) + row.eps);
  const float offset = row.weight == nullptr ? 0.0f : row.weight_offset;
  for (int at = threadIdx.x * kCount; at < row.width; at += step) {
    float values[kCount], weights[kCount];
    Load<kCount>(row.in + at, values);
    LoadOr<kCount>(row.weight, at, 1.0f, weights);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float normal = values[i] * scale;
      // Models with an offset round once, after the weight.
      values[i] = offset == 0.0f ? Rounded<T>(normal) * weights[i] : normal * (weights[i] + offset);
    }
    Store<kCount>(row.out + at, values);
  }
}

template <int kCount, class T>
__device__ void LayerNormalize(const NormRow<T>& row) {
  const int step = static_cast<int>(blockDim.x) * kCount;
  float sum = 0.0f;
  for (int at = threadIdx.x * kCount; at < row.width; at += step) {
    float values[kCount];
    LoadSum<kCount>(row, at, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum += values[i];
  }
  const float mean = BlockReduce(sum, Sum{}) / static_cast<float>(row.width);
  float squares = 0.0f;
  for (int at = threadIdx.x * kCount; at < row.width; at += step) {
    float values[kCount];
    Load<kCount>(row.in + at, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) squares += (values[i] - mean) * (values[i] - mean);
  }
  const float scale = rsqrtf(BlockReduce(squares, Sum{}) / static_cast<float>(row.width) + row.eps);
  const float offset = row.weight == nullptr ? 0.0f : row.weight_offset;
  for (int at = threadIdx.x * kCount; at < row.width; at += step) {
    float values[kCount], weights[kCount], biases[kCount];
    Load<kCount>(row.in + at, values);
    LoadOr<kCount>(row.weight, at, 1.0f, weights);
    LoadOr<kCount>(row.bias, at, 0.0f, biases);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = (values[i] - mean) * scale * (weights[i] + offset) + biases[i];
    }
    Store<kCount>(row.out + at, values);
  }
}

template <class T>
__device__ NormRow<T> RowOf(const NormArgs& args) {
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * args.width;
  return {static_cast<T*>(args.in) + begin,
          args.add == nullptr ? nullptr : static_cast<const T*>(args.add) + begin,
          args.add_scale,
          static_cast<const T*>(args.weight),
          args.weight_offset,
          static_cast<const T*>(args.bias),
          static_cast<T*>(args.out) + begin,
          static_cast<int>(args.width),
          args.eps};
}

template <class T, int kCount>
__global__ void __launch_bounds__(kNormThreads) AddRmsNormKernel(NormArgs args) {
  WaitForEarlierKernels();
  RmsNormalize<kCount>(RowOf<T>(args));
}

template <class T, int kCount>
__global__ void __launch_bounds__(kNormThreads) AddLayerNormKernel(NormArgs args) {
  WaitForEarlierKernels();
  LayerNormalize<kCount>(RowOf<T>(args));
}

template <class T, int kCount>
__global__ void AddAndCopyKernel(NormArgs args) {
  WaitForEarlierKernels();
  const auto at = static_cast<int>(Column<kCount>());
  const NormRow<T> row = RowOf<T>(args);
  if (at >= row.width) return;
  float values[kCount];
  LoadSum<kCount>(row, at, values);
  if (row.out != row.in) Store<kCount>(row.out + at, values);
}

template <class T, int kCount>
__global__ void __launch_bounds__(kHeadThreads) HeadNormKernel(HeadNormArgs args) {
  WaitForEarlierKernels();
  const HeadShape shape = args.shape;
  const std::uint32_t row_heads = shape.heads + 2 * shape.kv_heads;
  const std::uint32_t head = blockIdx.y;
  const bool is_query = head < shape.heads;
  const bool is_value = head >= shape.heads + shape.kv_heads;
  const T* weight = static_cast<const T*>(is_query ? args.query_weight : args.key_weight);
  const T* bias = static_cast<const T*>(is_query ? args.query_bias : args.key_bias);
  if (is_value) weight = bias = nullptr;
  if (!is_value && weight == nullptr && !args.plain) return;
  const std::uint32_t own =
      args.by_head ? (is_query ? head : head - shape.heads) * shape.head_dim : 0;
  T* const values =
      static_cast<T*>(args.qkv) + (std::uint64_t{blockIdx.x} * row_heads + head) * shape.head_dim;
  const NormRow<T> row{values,
                       nullptr,
                       1.0f,
                       weight == nullptr ? nullptr : weight + own,
                       args.weight_offset,
                       bias == nullptr ? nullptr : bias + own,
                       values,
                       static_cast<int>(shape.head_dim),
                       args.eps};
  if (args.layer_norm) return LayerNormalize<kCount>(row);
  RmsNormalize<kCount>(row);
}

// The first element of the row's query heads or key heads, and how many there are.
template <class Shape>
__device__ std::uint64_t PartOf(const Shape& shape, bool keys, int& width) {
  width = static_cast<int>((keys ? shape.kv_heads : shape.heads) * shape.head_dim);
  const std::uint32_t row_heads = shape.heads + 2 * shape.kv_heads;
  const std::uint32_t first = keys ? shape.heads : 0;
  return (std::uint64_t{blockIdx.x} * row_heads + first) * shape.head_dim;
}

template <class T, int kCount>
__global__ void __launch_bounds__(kNormThreads) SumSquaresKernel(SquaresArgs args) {
  WaitForEarlierKernels();
  int width = 0;
  const T* const part =
      static_cast<const T*>(args.qkv) + PartOf(args.shape, blockIdx.y == 1, width);
  float squares = 0.0f;
  for (int at = threadIdx.x * kCount; at < width; at += static_cast<int>(blockDim.x) * kCount) {
    float values[kCount];
    Load<kCount>(part + at, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) squares += values[i] * values[i];
  }
  squares = BlockReduce(squares, Sum{});
  if (threadIdx.x == 0) args.out[blockIdx.x * 2 + blockIdx.y] = squares;
}

template <class T, int kCount>
__global__ void __launch_bounds__(kNormThreads) WidthNormKernel(WidthNormArgs args) {
  WaitForEarlierKernels();
  const bool keys = blockIdx.y == 1;
  int width = 0;
  T* const part = static_cast<T*>(args.qkv) + PartOf(args.shape, keys, width);
  const T* const weight = static_cast<const T*>(keys ? args.key_weight : args.query_weight);
  const std::uint32_t elements = keys ? args.key_elements : args.query_elements;
  const float squares = args.squares[blockIdx.x * 2 + blockIdx.y];
  const float scale = rsqrtf(squares / static_cast<float>(elements) + args.eps);
  for (int at = threadIdx.x * kCount; at < width; at += static_cast<int>(blockDim.x) * kCount) {
    float values[kCount], weights[kCount];
    Load<kCount>(part + at, values);
    Load<kCount>(weight + at, weights);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = Rounded<T>(values[i] * scale) * weights[i];
    Store<kCount>(part + at, values);
  }
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

absl::Status AddAndCopy(const NormArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0 || (args.add == nullptr && args.in == args.out)) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((AddAndCopyKernel<decltype(element), kCount>),
                    GridOf<kCount>(args.rows, args.width), kThreads, 0, stream, args);
  });
}

absl::Status HeadNorm(const HeadNormArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  const dim3 grid(args.rows, args.shape.heads + args.shape.kv_heads * (args.values ? 2 : 1));
  return ForElements(dtype, args.shape.head_dim, [&](auto element, auto count) {
    PENSTOCK_LAUNCH((HeadNormKernel<decltype(element), decltype(count)::value>), grid, kHeadThreads,
                    0, stream, args);
  });
}

absl::Status SumSquares(const SquaresArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.shape.head_dim, [&](auto element, auto count) {
    PENSTOCK_LAUNCH((SumSquaresKernel<decltype(element), decltype(count)::value>),
                    dim3(args.rows, 2), kNormThreads, 0, stream, args);
  });
}

absl::Status WidthNorm(const WidthNormArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.shape.head_dim, [&](auto element, auto count) {
    PENSTOCK_LAUNCH((WidthNormKernel<decltype(element), decltype(count)::value>),
                    dim3(args.rows, 2), kNormThreads, 0, stream, args);
  });
}

}  // namespace penstock::shard::cuda
