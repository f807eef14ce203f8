// Which part of a model a tensor-parallel rank holds.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

#include "shard/model/model_spec.h"

namespace penstock::shard {

struct RankShare {
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint32_t first_head = 0;
  std::uint32_t heads = 0;
  // If world > kv_heads of the model, world / kv_heads ranks hold the same K/V head.
  std::uint32_t kv_heads = 0;
  std::uint32_t intermediate = 0;
  std::uint32_t first_vocabulary = 0;
  std::uint32_t vocabulary = 0;         // rows with weights; the last rank may hold fewer
  std::uint32_t vocabulary_padded = 0;  // the same on every rank; padding rows are zero
  // Ranks have some columns of every expert, or where these do not divide, some whole experts.
  bool whole_experts = false;
  // For gated delta nets. Like K/V heads, a key head may be on several ranks.
  std::uint32_t first_delta_key = 0;
  std::uint32_t delta_keys = 0;
  std::uint32_t first_delta_value = 0;
  std::uint32_t delta_values = 0;
};

// Returns the error of CheckWorldSize (common/world_size.h), or InvalidArgument for a rank that is
// not below the world size.
absl::StatusOr<RankShare> MakeRankShare(const ModelSpec& spec, std::uint32_t rank,
                                        std::uint32_t world);

}  // namespace penstock::shard
