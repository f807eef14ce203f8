#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/portable.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr unsigned kThreads = 64;

template <class T>
__device__ void RotateHead(T* head, const float* cos, const float* sin, int half) {
  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    const float first = ToFloat(head[i]);
    const float second = ToFloat(head[half + i]);
    head[i] = FromFloat<T>(first * cos[i] - second * sin[i]);
    head[half + i] = FromFloat<T>(second * cos[i] + first * sin[i]);
  }
}

// A block per row and head: query heads, then key heads, then value heads.
template <class T>
__global__ void RopeKvWriteKernel(RopeArgs args) {
  const HeadShape shape = args.shape;
  const std::uint32_t row = blockIdx.x;
  const std::uint32_t head = blockIdx.y;
  const std::uint32_t row_heads = shape.heads + 2 * shape.kv_heads;
  const int dim = static_cast<int>(shape.head_dim);
  T* values = static_cast<T*>(args.qkv) + (std::uint64_t{row} * row_heads + head) * shape.head_dim;
  if (head < shape.heads + shape.kv_heads) {
    const std::uint64_t angles = static_cast<std::uint64_t>(args.positions[row]) * (dim / 2);
    RotateHead(values, args.cos + angles, args.sin + angles, dim / 2);
  }
  if (head < shape.heads) return;
  __syncthreads();
  const bool is_key = head < shape.heads + shape.kv_heads;
  const std::uint32_t kv_head = (head - shape.heads) % shape.kv_heads;
  T* cache = static_cast<T*>(is_key ? args.keys : args.values) +
             (static_cast<std::uint64_t>(args.cache_rows[row]) * shape.kv_heads + kv_head) *
                 shape.head_dim;
  for (int i = threadIdx.x; i < dim; i += blockDim.x) cache[i] = values[i];
}

}  // namespace

absl::Status RopeKvWrite(const RopeArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  const dim3 grid(args.rows, args.shape.heads + 2 * args.shape.kv_heads);
  return ForElement(dtype, [&](auto element) {
    PENSTOCK_LAUNCH(RopeKvWriteKernel<decltype(element)>, grid, kThreads, 0, stream, args);
  });
}

}  // namespace penstock::shard::cuda
