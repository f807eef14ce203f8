#include "shard/model/rank_share.h"

#include <algorithm>
#include <string>

#include "common/status.h"
#include "common/world_size.h"

namespace penstock::shard {
namespace {

bool DeltaFits(const DeltaSpec& delta, std::uint32_t world) {
  return delta.value_heads % world == 0 &&
         (delta.key_heads % world == 0 || world % delta.key_heads == 0);
}

// Whether `world` divides the heads of gated delta nets. The error lists the sizes that divide the
// rest of the model, too.
absl::Status CheckDeltaHeads(const ModelSpec& spec, std::uint32_t world) {
  if (spec.delta.value_heads == 0 || DeltaFits(spec.delta, world)) return absl::OkStatus();
  std::string fitting;
  for (std::uint32_t size = 1; size <= spec.heads; ++size) {
    if (!DeltaFits(spec.delta, size)) continue;
    if (!CheckWorldSize(size, {spec.heads, spec.kv_heads, spec.intermediate}).ok()) continue;
    fitting += (fitting.empty() ? "" : ", ") + std::to_string(size);
  }
  return absl::UnimplementedError(
      Message(BadValue("num-shard", std::to_string(world),
                       "a divisor of the " + std::to_string(spec.delta.value_heads) +
                           " value heads, and a divisor or a multiple of the " +
                           std::to_string(spec.delta.key_heads) +
                           " key heads, of the model's gated delta nets: " + fitting)));
}

}  // namespace

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
  PENSTOCK_RETURN_IF_ERROR(CheckDeltaHeads(spec, world));
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
