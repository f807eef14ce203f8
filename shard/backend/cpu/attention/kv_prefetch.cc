#include "shard/backend/cpu/attention/kv_prefetch.h"

#include <algorithm>

namespace penstock::shard::cpu {

KvPrefetch::KvPrefetch(const AttentionPlan& plan, const KvCache& cache, std::size_t index,
                       const std::uint32_t* tables, const std::size_t* table_starts,
                       AttentionCursor begin, AttentionCursor end)
    : plan_(plan),
      cache_(cache),
      index_(index),
      tables_(tables),
      table_starts_(table_starts),
      end_(end),
      computed_(begin),
      requested_(begin) {}

std::span<const BlockRun> KvPrefetch::Next() {
  if (AtEnd(computed_)) return {};
  blocks_computed_ += CellsOf(computed_).count;
  Advance(computed_);
  const std::size_t distance = std::max<std::size_t>(1, kPartition / cache_.block_size());
  while (blocks_requested_ < blocks_computed_ && !AtEnd(requested_))
    Take(blocks_computed_ - blocks_requested_);
  std::size_t runs = 0;
  while (runs < kMostRuns && blocks_requested_ < blocks_computed_ + distance &&
         !AtEnd(requested_)) {
    runs_[runs++] = Take(blocks_computed_ + distance - blocks_requested_);
  }
  return {runs_, runs};
}

bool KvPrefetch::AtEnd(const AttentionCursor& at) const {
  return at.item > end_.item || (at.item == end_.item && at.partition >= end_.partition);
}

BlockRun KvPrefetch::CellsOf(const AttentionCursor& at) const {
  const TokenTile& tile = plan_.Tile(at.item);
  const PositionRange positions = plan_.PositionsOf(tile, tile.first_partition + at.partition);
  const HeadCache cache = cache_.Head(index_, plan_.Head(at.item));
  const std::size_t first = positions.first / cache.block_size;
  return {cache.base, tables_ + table_starts_[tile.segment] + first,
          (positions.end + cache.block_size - 1) / cache.block_size - first};
}

void KvPrefetch::Advance(AttentionCursor& at) const {
  const TokenTile& tile = plan_.Tile(at.item);
  if (++at.partition < tile.end_partition - tile.first_partition) return;
  ++at.item;
  at.partition = 0;
}

BlockRun KvPrefetch::Take(std::size_t most) {
  BlockRun run = CellsOf(requested_);
  run.blocks += blocks_in_partition_;
  run.count = std::min(run.count - blocks_in_partition_, most);
  blocks_requested_ += run.count;
  blocks_in_partition_ += run.count;
  if (blocks_in_partition_ == CellsOf(requested_).count) {
    Advance(requested_);
    blocks_in_partition_ = 0;
  }
  return run;
}

}  // namespace penstock::shard::cpu
