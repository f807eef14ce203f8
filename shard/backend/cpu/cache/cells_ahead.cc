#include "shard/backend/cpu/cache/cells_ahead.h"

#include <algorithm>

namespace penstock::shard::cpu {

CellsAhead::CellsAhead(const AttentionPlan& plan, const KvCache& cache, std::size_t layer,
                       const std::uint32_t* tables, const std::size_t* table_starts,
                       AttentionCursor begin, AttentionCursor end)
    : plan_(plan),
      cache_(cache),
      layer_(layer),
      tables_(tables),
      table_starts_(table_starts),
      end_(end),
      computed_(begin),
      asked_(begin) {}

std::span<const CellRun> CellsAhead::Enter() {
  if (AtEnd(computed_)) return {};
  blocks_computed_ += CellsOf(computed_).count;
  Advance(computed_);
  const std::size_t ahead = std::max<std::size_t>(1, kPartition / cache_.block_size());
  while (blocks_asked_ < blocks_computed_ && !AtEnd(asked_)) Take(blocks_computed_ - blocks_asked_);
  std::size_t runs = 0;
  while (runs < kMostRuns && blocks_asked_ < blocks_computed_ + ahead && !AtEnd(asked_)) {
    runs_[runs++] = Take(blocks_computed_ + ahead - blocks_asked_);
  }
  return {runs_, runs};
}

bool CellsAhead::AtEnd(const AttentionCursor& at) const {
  return at.item > end_.item || (at.item == end_.item && at.partition >= end_.partition);
}

CellRun CellsAhead::CellsOf(const AttentionCursor& at) const {
  const TokenTile& tile = plan_.Tile(at.item);
  const PositionRange positions = plan_.PositionsOf(tile, tile.first_partition + at.partition);
  const HeadCache cache = cache_.Head(layer_, plan_.Head(at.item));
  const std::size_t first = positions.first / cache.block_size;
  return {cache.base, tables_ + table_starts_[tile.segment] + first,
          (positions.end + cache.block_size - 1) / cache.block_size - first};
}

void CellsAhead::Advance(AttentionCursor& at) const {
  const TokenTile& tile = plan_.Tile(at.item);
  if (++at.partition < tile.end_partition - tile.first_partition) return;
  ++at.item;
  at.partition = 0;
}

CellRun CellsAhead::Take(std::size_t most) {
  CellRun run = CellsOf(asked_);
  run.blocks += asked_in_;
  run.count = std::min(run.count - asked_in_, most);
  blocks_asked_ += run.count;
  asked_in_ += run.count;
  if (asked_in_ == CellsOf(asked_).count) {
    Advance(asked_);
    asked_in_ = 0;
  }
  return run;
}

}  // namespace penstock::shard::cpu
