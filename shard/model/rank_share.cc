#include "shard/model/rank_share.h"

#include <algorithm>
#include <string>

#include "common/status.h"
#include "common/world_size.h"

namespace penstock::shard {
namespace {

absl::Status CheckSizes(const ModelSpec& spec, std::uint32_t world) {
  return CheckWorldSize(world,
                        {{spec.heads, "attention heads"},
                         {spec.intermediate, "FFN columns"},
                         {spec.expert_intermediate, "columns of an expert", false, spec.experts},
                         {spec.shared_intermediate, "columns of the shared expert"},
                         {spec.kv_heads, "K/V heads", true},
                         {spec.full_kv_heads, "K/V heads of full layers", true},
                         {spec.delta.value_heads, "value heads of gated delta nets"},
                         {spec.delta.key_heads, "key heads of gated delta nets", true}});
}

}  // namespace

absl::StatusOr<RankShare> MakeRankShare(const ModelSpec& spec, std::uint32_t rank,
                                        std::uint32_t world) {
  if (world == 0 || rank >= world) {
    return BadValue("rank", std::to_string(rank), "below the world size " + std::to_string(world));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckSizes(spec, world));
  RankShare part;
  part.whole_experts = spec.expert_intermediate % world != 0;
  part.rank = rank;
  part.world = world;
  part.heads = spec.heads / world;
  part.first_head = rank * part.heads;
  part.kv_heads = std::max(1u, spec.kv_heads / world);
  part.intermediate = spec.intermediate / world;
  part.vocabulary_padded = (spec.vocabulary + world - 1) / world;
  part.first_vocabulary = std::min(spec.vocabulary, rank * part.vocabulary_padded);
  part.vocabulary = std::min(part.vocabulary_padded, spec.vocabulary - part.first_vocabulary);
  if (spec.delta.value_heads > 0) {
    part.delta_values = spec.delta.value_heads / world;
    part.first_delta_value = rank * part.delta_values;
    part.delta_keys = std::max(1u, spec.delta.key_heads / world);
    part.first_delta_key =
        static_cast<std::uint32_t>(std::uint64_t{rank} * spec.delta.key_heads / world);
  }
  return part;
}

}  // namespace penstock::shard
