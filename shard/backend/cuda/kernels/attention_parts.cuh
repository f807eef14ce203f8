// Where an item leaves its results for the merge, with tensor cores and without.
#pragma once

#include "shard/backend/cuda/kernels/portable.cuh"
#include "shard/backend/cuda/paged_attention.h"

namespace penstock::shard::cuda {

// A query's part of the workspace: its output before it is divided by the total, then its maximum
// (of scaled scores; natural exponents) and its total.
__device__ inline float* PartOf(const AttentionArgs& args, std::uint64_t item,
                                std::uint32_t kv_head, int m) {
  return args.workspace +
         ((item * args.shape.kv_heads + kv_head) * kMaxQueries + m) * (args.shape.head_dim + 2);
}

// Enqueues the items and chunks of a plan for tensor cores, without the merge.
absl::Status AttendOnTensorCores(const AttentionArgs& args, Stream stream);

}  // namespace penstock::shard::cuda
