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

// The first position of the chunk to which a query at position `own` belongs.
__device__ inline int FirstOfChunk(const AttentionArgs& args, int own) {
  const int chunk = static_cast<int>(args.chunk);
  return chunk == 0 ? 0 : own / chunk * chunk;
}

// The score of softmax for a scaled product.
__device__ inline float AdjustedScore(const AttentionArgs& args, float score, std::uint32_t head,
                                      int position, int own) {
  if (args.softcap != 0.0f) score = args.softcap * tanhf(score / args.softcap);
  if (args.slopes == nullptr) return score;
  const float slope = args.slopes[head];
  if (args.rounded_scale == 0.0f) return score + slope * static_cast<float>(position - own);
  const float place = Rounded<Bf16>(static_cast<float>(position));
  return score + Rounded<Bf16>(Rounded<Bf16>(slope) * place) * args.rounded_scale;
}

// Enqueues the items and chunks of a plan for tensor cores, without the merge.
absl::Status AttendOnTensorCores(const AttentionArgs& args, Stream stream);
// The same where scores are adjusted.
absl::Status AttendAdjusted(const AttentionArgs& args, Stream stream);

}  // namespace penstock::shard::cuda
