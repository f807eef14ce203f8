#include <numeric>

#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/vectors.cuh"
#include "shard/backend/cuda/kernels/weight_forms.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr unsigned kThreads = 256;

// Where a head of the row lies in the cache; null for query heads, which the cache does not hold,
// and where nothing is written.
template <class C>
__device__ C* InCache(const RopeArgs& args, std::uint32_t head) {
  const HeadShape shape = args.shape;
  if (head < shape.heads || args.keys == nullptr) return nullptr;
  const bool is_key = head < shape.heads + shape.kv_heads;
  const std::uint32_t kv_head = (head - shape.heads) % shape.kv_heads;
  return static_cast<C*>(is_key ? args.keys : args.values) +
         (static_cast<std::uint64_t>(args.cache_rows[blockIdx.x]) * shape.kv_heads + kv_head) *
             shape.head_dim;
}

// C: T, or bytes, which are e4m3.
template <int kCount, class T, class C>
__device__ void StoreInCache(C* cache, const float (&values)[kCount]) {
  if constexpr (sizeof(C) == 1) {
    StoreFp8<kCount, T>(cache, values);
  } else {
    Store<kCount>(cache, values);
  }
}

// Elements [at, at + kCount) and their partners half a head further.
template <int kCount, class T, class C>
__device__ void Rotate(T* head, C* cache, const float* cos, const float* sin, int at, int half) {
  float first[kCount], second[kCount];
  Load<kCount>(head + at, first);
  Load<kCount>(head + half + at, second);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float a = first[i];
    const float b = second[i];
    first[i] = a * cos[at + i] - b * sin[at + i];
    second[i] = b * cos[at + i] + a * sin[at + i];
  }
  Store<kCount>(head + at, first);
  Store<kCount>(head + half + at, second);
  if (cache == nullptr) return;
  StoreInCache<kCount, T>(cache + at, first);
  StoreInCache<kCount, T>(cache + half + at, second);
}

// Copies elements from `first` on of the heads [head, end_head) of the row to the cache.
template <int kCount, class C, class T>
__device__ void CopyToCache(const RopeArgs& args, const T* row, std::uint32_t head,
                            std::uint32_t end_head, std::uint32_t first) {
  const std::uint32_t dim = args.shape.head_dim;
  const std::uint32_t pieces = (dim - first) / kCount;
  for (std::uint32_t i = threadIdx.x; i < (end_head - head) * pieces; i += kThreads) {
    const std::uint32_t of = head + i / pieces;
    const std::uint32_t at = first + i % pieces * kCount;
    float values[kCount];
    Load<kCount>(row + of * dim + at, values);
    StoreInCache<kCount, T>(InCache<C>(args, of) + at, values);
  }
}

// After the rotation, which other threads have written.
template <int kCount, class T>
__device__ void GrowQueries(const RopeArgs& args, T* row) {
  __syncthreads();
  const std::uint32_t position = args.positions[blockIdx.x];
  const std::uint32_t steps = (position + args.growth_first) / args.growth_period;
  const float growth = log1pf(static_cast<float>(steps)) * args.growth_rate + 1.0f;
  const std::uint32_t width = args.shape.heads * args.shape.head_dim;
  for (std::uint32_t at = threadIdx.x * kCount; at < width; at += kThreads * kCount) {
    float values[kCount];
    Load<kCount>(row + at, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] *= growth;
    Store<kCount>(row + at, values);
  }
}

// A block per row. Its threads rotate pieces of query and key heads, then copy what is not rotated:
// the rest of key heads, and value heads.
template <class T, class C, int kCount>
__global__ void RopeKvWriteKernel(RopeArgs args) {
  WaitForEarlierKernels();
  const HeadShape shape = args.shape;
  const int half = static_cast<int>(args.rotary) / 2;
  const std::uint32_t pieces = half / kCount;  // of half a head
  const std::uint32_t rotated = (shape.heads + shape.kv_heads) * pieces;
  const std::uint32_t row_heads = shape.heads + 2 * shape.kv_heads;
  T* const row = static_cast<T*>(args.qkv) + std::uint64_t{blockIdx.x} * row_heads * shape.head_dim;
  const std::uint64_t angles =
      std::uint64_t{args.by_row ? blockIdx.x : static_cast<unsigned>(args.positions[blockIdx.x])} *
      half;
  for (std::uint32_t i = threadIdx.x; i < rotated; i += kThreads) {
    const std::uint32_t head = i / pieces;
    Rotate<kCount>(row + head * shape.head_dim, InCache<C>(args, head), args.cos + angles,
                   args.sin + angles, static_cast<int>(i % pieces) * kCount, half);
  }
  if (args.growth_rate != 0.0f) GrowQueries<kCount>(args, row);
  if (args.keys == nullptr) return;
  const std::uint32_t first_value = shape.heads + shape.kv_heads;
  CopyToCache<kCount, C>(args, row, shape.heads, first_value, args.rotary);
  CopyToCache<kCount, C>(args, row, first_value, row_heads, 0);
}

}  // namespace

absl::Status RopeKvWrite(const RopeArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  const std::uint32_t unit = std::gcd(args.rotary / 2, args.shape.head_dim);
  return ForElements(dtype, unit, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    if (args.fp8_cache) {
      PENSTOCK_LAUNCH((RopeKvWriteKernel<T, std::uint8_t, kCount>), args.rows, kThreads, 0, stream,
                      args);
    } else {
      PENSTOCK_LAUNCH((RopeKvWriteKernel<T, T, kCount>), args.rows, kThreads, 0, stream, args);
    }
  });
}

}  // namespace penstock::shard::cuda
