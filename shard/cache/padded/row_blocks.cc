#include "shard/cache/padded/row_blocks.h"

#include <string>
#include <utility>

#include "common/status.h"

namespace penstock::shard {

absl::StatusOr<CellsArranged> RowBlocks::Arrange(std::span<const CellPart> parts) {
  PENSTOCK_RETURN_IF_ERROR(Check(parts));
  copies_.clear();
  DropOtherRows(parts);
  // All rows give blocks back before one gets more: then there are enough for every partition.
  for (const CellPart& part : parts) {
    for (const CellRow& row : part.rows) Shrink(tables_[row.slot], BlocksFor(part.width));
  }
  CellsArranged arranged;
  for (const CellPart& part : parts) {
    arranged.allocated += std::uint64_t{part.rows.size()} * part.width;
    for (const CellRow& row : part.rows) {
      std::vector<BlockId>& table = tables_[row.slot];
      while (table.size() < BlocksFor(part.width)) table.push_back(*pool_.Allocate());
      if (row.blocks.empty()) continue;
      arranged.copied += row.length;
      for (std::uint32_t i = 0; i < BlocksFor(row.length); ++i) {
        copies_.push_back({row.blocks[i], table[i]});
      }
    }
  }
  return arranged;
}

std::span<const BlockId> RowBlocks::Table(SlotId slot) const {
  const auto found = tables_.find(slot);
  return found == tables_.end() ? std::span<const BlockId>() : found->second;
}

absl::Status RowBlocks::Check(std::span<const CellPart> parts) const {
  std::uint64_t cells = 0;
  std::uint64_t rows = 0;
  for (const CellPart& part : parts) {
    cells += std::uint64_t{part.rows.size()} * part.width;
    rows += part.rows.size();
    for (const CellRow& row : part.rows) PENSTOCK_RETURN_IF_ERROR(CheckRow(row, part.width));
  }
  if (cells > cells_) {
    return BadValue("cells", std::to_string(cells), "at most " + std::to_string(cells_));
  }
  if (rows > rows_) {
    return BadValue("rows of cells", std::to_string(rows), "at most " + std::to_string(rows_));
  }
  return absl::OkStatus();
}

absl::Status RowBlocks::CheckRow(const CellRow& row, std::uint32_t width) const {
  if (row.length > width) {
    return BadValue("row length", std::to_string(row.length),
                    "at most the width " + std::to_string(width));
  }
  if (row.blocks.empty()) return absl::OkStatus();
  if (row.blocks.size() < BlocksFor(row.length)) {
    return BadValue("row.blocks", std::to_string(row.blocks.size()) + " entries",
                    "at least " + std::to_string(BlocksFor(row.length)));
  }
  for (const BlockId block : row.blocks.first(BlocksFor(row.length))) {
    if (block.value() < first_.value()) continue;
    return BadValue("row.blocks", std::to_string(block.value()),
                    "below the cache's " + std::to_string(first_.value()));
  }
  return absl::OkStatus();
}

// A row with `blocks` is new, even if its slot had a row before.
void RowBlocks::DropOtherRows(std::span<const CellPart> parts) {
  std::map<SlotId, std::vector<BlockId>> before = std::exchange(tables_, {});
  for (const CellPart& part : parts) {
    for (const CellRow& row : part.rows) {
      if (row.blocks.empty()) tables_.insert(before.extract(row.slot));
    }
  }
  for (auto& [slot, table] : before) Shrink(table, 0);
}

void RowBlocks::Shrink(std::vector<BlockId>& table, std::uint32_t blocks) {
  for (; table.size() > blocks; table.pop_back()) pool_.Release(table.back());
}

}  // namespace penstock::shard
