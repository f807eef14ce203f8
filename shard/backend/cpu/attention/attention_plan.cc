#include "shard/backend/cpu/attention/attention_plan.h"

#include <algorithm>

namespace penstock::shard::cpu {
namespace {

// The fixed cost of a partition, in keys.
constexpr std::uint64_t kPartitionOverhead = 16;
// The fixed cost of a tile, in rows: keys and values are read once for all rows.
constexpr std::uint64_t kTileOverhead = 2;
// Items are divided if one costs more than this part of a thread's share.
constexpr std::uint64_t kFinestShare = 8;

std::size_t FirstVisible(const AttentionShape& shape, std::size_t position) {
  const std::size_t of_chunk = shape.chunk == 0 ? 0 : position / shape.chunk * shape.chunk;
  const bool all = shape.window == 0 || position < shape.window;
  return std::max(of_chunk, all ? 0 : position - shape.window + 1);
}

std::size_t EndVisible(const AttentionShape& shape, const RaggedSegment& segment,
                       const TokenTile& tile) {
  const std::size_t end = tile.position + (tile.candidates ? 1 : tile.tokens);
  if (!shape.both_ways) return end;
  const std::size_t all = std::size_t{segment.context_length} + segment.query_count;
  return shape.window == 0 ? all : std::min(all, end + shape.window - 1);
}

// The most query heads of a latent cache in one tile.
constexpr std::uint32_t kMostLatentGroup = 8;

}  // namespace

PlanHeads HeadsOfPlan(const Program& program, const AttentionOp& op) {
  if (!program.caches[op.cache].values_in_keys) return {op.heads.kv_heads, op.heads.Group()};
  std::uint32_t group = std::min(kMostLatentGroup, op.heads.query_heads);
  while (op.heads.query_heads % group != 0) --group;
  return {op.heads.query_heads / group, group};
}

void AttentionPlan::Build(const AttentionShape& shape, std::span<const RaggedSegment> segments) {
  shape_ = shape;
  AddTiles(segments);
  std::uint64_t largest = 0;
  before_.assign(1, 0);
  for (const TokenTile& tile : tiles_) {
    largest = std::max(largest, tile.cost);
    before_.push_back(before_.back() + tile.cost * shape_.kv_heads);
  }
  const bool coarse = largest * kFinestShare * shape_.threads > before_.back();
  if (!coarse || !Divide(true)) Divide(false);
}

void AttentionPlan::AddTiles(std::span<const RaggedSegment> segments) {
  tiles_.clear();
  const std::size_t most = TileTokens(shape_.group);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const RaggedSegment& segment = segments[i];
    for (std::size_t first = 0; first < segment.query_count; first += most) {
      TokenTile tile;
      tile.segment = i;
      tile.row = segment.query_start + first;
      tile.candidates = segment.candidates;
      tile.position = segment.context_length + (segment.candidates ? 0 : first);
      tile.tokens = std::min<std::size_t>(most, segment.query_count - first);
      tile.end = EndVisible(shape_, segment, tile);
      tile.first_partition = FirstVisible(shape_, tile.position) / kPartition;
      tile.end_partition = (tile.end - 1) / kPartition + 1;
      for (std::size_t p = tile.first_partition; p < tile.end_partition; ++p) {
        tile.cost += PartitionCost(tile, p);
      }
      tiles_.push_back(tile);
    }
  }
}

PositionRange AttentionPlan::PositionsOf(const TokenTile& tile, std::size_t partition) const {
  const std::size_t origin = partition * kPartition;
  return {std::max(origin, FirstVisible(shape_, tile.position)),
          std::min(origin + kPartition, tile.end)};
}

std::uint64_t AttentionPlan::PartitionCost(const TokenTile& tile, std::size_t partition) const {
  const PositionRange range = PositionsOf(tile, partition);
  return (tile.tokens * shape_.group + kTileOverhead) *
         (range.end - range.first + kPartitionOverhead);
}

// The item, or the partition within it, that is nearest to the point where `cost` is reached.
AttentionCursor AttentionPlan::Locate(std::uint64_t cost, bool within_items) const {
  const auto after = std::upper_bound(before_.begin(), before_.end(), cost);
  const auto index = static_cast<std::size_t>(after - before_.begin()) - 1;
  if (index >= tiles_.size()) return {tiles_.size() * shape_.kv_heads, 0};
  const TokenTile& tile = tiles_[index];
  const std::uint64_t inside = cost - before_[index];
  std::size_t item = index * shape_.kv_heads + inside / tile.cost;
  std::uint64_t left = inside % tile.cost;
  if (!within_items) {
    if (left * 2 >= tile.cost) ++item;
    return {item, 0};
  }
  for (std::size_t p = tile.first_partition; p < tile.end_partition; ++p) {
    const std::uint64_t here = PartitionCost(tile, p);
    if (left * 2 < here) return {item, p - tile.first_partition};
    left -= std::min(left, here);
  }
  return {item + 1, 0};
}

// Sets the bounds of all threads. Partitions count from the first of their item. Returns false if
// the divided items need more slots than there are.
bool AttentionPlan::Divide(bool within_items) {
  bounds_.clear();
  splits_.clear();
  for (std::size_t thread = 0; thread <= shape_.threads; ++thread) {
    bounds_.push_back(Locate(before_.back() * thread / shape_.threads, within_items));
  }
  bounds_.back() = {tiles_.size() * shape_.kv_heads, 0};
  std::size_t slots = 0;
  for (std::size_t thread = 1; thread < shape_.threads; ++thread) {
    const AttentionCursor& bound = bounds_[thread];
    if (bound.partition == 0 || FindSplit(bound.item) != nullptr) continue;
    splits_.push_back({bound.item, slots});
    slots += Tile(bound.item).end_partition - Tile(bound.item).first_partition;
  }
  return slots <= shape_.slots;
}

const SplitItem* AttentionPlan::FindSplit(std::size_t item) const {
  for (const SplitItem& split : splits_) {
    if (split.item == item) return &split;
  }
  return nullptr;
}

}  // namespace penstock::shard::cpu
