// The grid of kernels that compute each element of some rows for itself.
#pragma once

#include "shard/backend/cuda/kernels/vectors.cuh"

namespace penstock::shard::cuda {

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

}  // namespace penstock::shard::cuda
