#include "shard/model/rank_share.h"

#include <algorithm>

#include "common/status.h"
#include "common/world_size.h"

namespace penstock::shard {

absl::StatusOr<RankShare> MakeRankShare(const ModelSpec& spec, std::uint32_t rank,
                                        std::uint32_t world) {
  if (world == 0 || rank >= world) {
    return BadValue("rank", std::to_string(rank), "below the world size " + std::to_string(world));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckWorldSize(world, {spec.heads, spec.kv_heads, spec.intermediate}));
  RankShare part;
  part.whole_experts =
      spec.expert_intermediate % world != 0 && spec.experts > 0 && spec.experts % world == 0;
  const std::uint32_t expert_columns = part.whole_experts ? 0 : spec.expert_intermediate;
  for (const std::uint32_t width : {expert_columns, spec.shared_intermediate}) {
    PENSTOCK_RETURN_IF_ERROR(CheckWorldSize(world, {spec.heads, spec.kv_heads, width}));
  }
  if (spec.full_kv_heads > 0) {
    PENSTOCK_RETURN_IF_ERROR(
        CheckWorldSize(world, {spec.heads, spec.full_kv_heads, spec.intermediate}));
  }
  part.rank = rank;
  part.world = world;
  part.heads = spec.heads / world;
  part.first_head = rank * part.heads;
  part.kv_heads = std::max(1u, spec.kv_heads / world);
  part.first_kv_head = static_cast<std::uint32_t>(std::uint64_t{rank} * spec.kv_heads / world);
  part.intermediate = spec.intermediate / world;
  part.first_intermediate = rank * part.intermediate;
  part.vocabulary_padded = (spec.vocabulary + world - 1) / world;
  part.first_vocabulary = std::min(spec.vocabulary, rank * part.vocabulary_padded);
  part.vocabulary = std::min(part.vocabulary_padded, spec.vocabulary - part.first_vocabulary);
  return part;
}

}  // namespace penstock::shard
