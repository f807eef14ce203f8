// Where the rows of the padded KV layout lie if a sub-batch is one dense array (row_blocks.h is the
// other way). The memory of a KV cache is an array of positions:
// first those of the blocks of the paged layout, then a fixed number of cells. The cells hold parts
// of `rows` x `width` positions. Position p of row r of a part lies at base + p * rows + r, column
// after column. A part that only gets wider uses the cells after it, and nothing moves. A part
// whose rows change moves as a whole.
//
// A part keeps its place if it can. Otherwise it moves to a gap, with some columns to grow. If no
// gap is large enough, all parts get new places, and the free cells are divided among them.
//
// Arithmetic only: the backend moves the contents. One owner.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/ids.h"

namespace penstock::shard {

struct CellRow {
  SlotId slot;
  std::uint32_t length = 0;  // positions whose K/V are written already, <= width
  // Where the K/V are now, for a row that was in no part before; empty for other rows.
  std::span<const BlockId> blocks;
};

// One dense right-padded sub-batch.
struct CellPart {
  std::vector<CellRow> rows;
  std::uint32_t width = 0;  // positions of each row
};

// In cells.
struct CellsArranged {
  std::uint64_t allocated = 0;  // of all parts
  std::uint64_t copied = 0;
};

// The index of a position of a sequence that has these blocks.
inline std::int64_t InBlocks(std::span<const BlockId> blocks, std::uint32_t position,
                             std::uint32_t block_size) {
  return std::int64_t{blocks[position / block_size].value()} * block_size + position % block_size;
}

class CellLayout {
 public:
  struct Part {
    std::vector<SlotId> rows;
    std::uint32_t width = 0;
    std::uint32_t base = 0;  // index of its first position

    std::uint32_t Cells() const { return static_cast<std::uint32_t>(rows.size()) * width; }
    std::uint32_t Cell(std::uint32_t row, std::uint32_t position) const {
      return base + position * static_cast<std::uint32_t>(rows.size()) + row;
    }
  };
  struct Place {
    std::uint32_t part = 0;
    std::uint32_t row = 0;
  };
  // Contents to move: from[i] -> to[i], as int64 for a tensor of indexes. All must be read before
  // any is written.
  struct Moves {
    std::vector<std::int64_t> from;
    std::vector<std::int64_t> to;
  };

  CellLayout() = default;
  // `cells` after `first` positions of blocks.
  CellLayout(std::uint32_t cells, std::uint32_t first, std::uint32_t block_size)
      : cells_(cells), first_(first), block_size_(block_size) {}

  // Makes the cells hold exactly these parts, in this order. moves() then says what to copy for
  // that. InvalidArgument if the parts have more than cells() cells; then nothing changed.
  absl::StatusOr<CellsArranged> Arrange(std::span<const CellPart> parts);
  const Moves& moves() const { return moves_; }

  std::uint32_t cells() const { return cells_; }
  const std::vector<Part>& parts() const { return parts_; }
  // The slot must be a row.
  Place Find(SlotId slot) const { return places_.at(slot.value()); }
  std::uint32_t Cell(SlotId slot, std::uint32_t position) const {
    const Place place = Find(slot);
    return parts_[place.part].Cell(place.row, position);
  }

 private:
  static constexpr std::uint32_t kNowhere = UINT32_MAX;
  // Free columns after a part that moves.
  static constexpr std::uint32_t kRoomColumns = 16;

  std::uint32_t End() const { return first_ + cells_; }
  void KeepPlaces(std::span<const CellPart> parts);
  bool FillGaps();
  void PlaceAll();
  void CollectMoves(std::span<const CellPart> parts);

  std::uint32_t cells_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t block_size_ = 1;
  std::vector<Part> parts_;
  std::unordered_map<std::uint32_t, Place> places_;  // by slot
  std::vector<Part> next_;
  Moves moves_;
};

}  // namespace penstock::shard
