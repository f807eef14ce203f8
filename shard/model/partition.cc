#include "shard/model/partition.h"

#include <algorithm>

#include "common/status.h"

namespace penstock::shard {
namespace {

// What operators write for it.
constexpr std::string_view kWorld = "num-shard";

absl::Status CheckDivides(std::uint32_t world, std::uint32_t size, std::string_view what) {
  if (size % world == 0) return absl::OkStatus();
  return BadValue(kWorld, std::to_string(world),
                  "a divisor of the model's " + std::to_string(size) + " " + std::string(what));
}

}  // namespace

absl::StatusOr<Partition> MakePartition(const ModelSpec& spec, std::uint32_t rank,
                                        std::uint32_t world) {
  if (world == 0 || rank >= world) {
    return BadValue("rank", std::to_string(rank), "below the world size " + std::to_string(world));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckDivides(world, spec.heads, "attention heads"));
  PENSTOCK_RETURN_IF_ERROR(CheckDivides(world, spec.intermediate, "FFN columns"));
  if (spec.kv_heads % world != 0 && world % spec.kv_heads != 0) {
    return BadValue(
        kWorld, std::to_string(world),
        "a divisor or a multiple of the model's " + std::to_string(spec.kv_heads) + " K/V heads");
  }
  Partition part;
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
