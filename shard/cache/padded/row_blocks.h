// Padded KV rows in whole blocks. A row has enough blocks for the width of its sub-batch, so
// kernels of the paged layout read it through a block table, as they read any sequence.
//
// A row that joins gets blocks, and its contents are copied there. It keeps these blocks until it
// leaves. When sub-batches merge or divide, only widths change: rows gain or lose blocks at their
// end, and no contents move.
//
// Arithmetic only: the backend copies the contents. One owner.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "common/ids.h"
#include "common/kv/block_pool.h"
#include "shard/cache/padded/cell_layout.h"
#include "shard/cache/padded/pool_split.h"

namespace penstock::shard {

class RowBlocks {
 public:
  struct Copy {
    BlockId from;
    BlockId to;
  };

  RowBlocks() = default;
  // Parts have at most `cells` cells in `rows` rows. The blocks of rows are those from `first` on;
  // BlocksOfCells(cells, rows, block_size) says how many. Sequences have the blocks before.
  RowBlocks(std::uint32_t cells, std::uint32_t rows, BlockId first, std::uint32_t block_size)
      : cells_(cells),
        rows_(rows),
        first_(first),
        block_size_(block_size),
        pool_(static_cast<std::uint32_t>(BlocksOfCells(cells, rows, block_size)), first) {}

  // Makes the rows exactly those of the parts. copies() then says what to copy; no copy reads what
  // another one writes. InvalidArgument if the parts break a limit; then nothing changed.
  absl::StatusOr<CellsArranged> Arrange(std::span<const CellPart> parts);
  const std::vector<Copy>& copies() const { return copies_; }

  // The blocks of a row; empty if there is no such row.
  std::span<const BlockId> Table(SlotId slot) const;

 private:
  std::uint32_t BlocksFor(std::uint32_t positions) const {
    return (positions + block_size_ - 1) / block_size_;
  }
  absl::Status Check(std::span<const CellPart> parts) const;
  absl::Status CheckRow(const CellRow& row, std::uint32_t width) const;
  void DropOtherRows(std::span<const CellPart> parts);
  void Shrink(std::vector<BlockId>& table, std::uint32_t blocks);

  std::uint32_t cells_ = 0;
  std::uint32_t rows_ = 0;
  BlockId first_{0};
  std::uint32_t block_size_ = 1;
  BlockPool pool_{0};
  std::map<SlotId, std::vector<BlockId>> tables_;
  std::vector<Copy> copies_;  // of the last Arrange
};

}  // namespace penstock::shard
