// Where the rows of the padded KV layout lie. A store of fixed size holds parts of `rows` x `width`
// cells; a cell is one position of one row. Cell (position p, row r) of a part is
// base + p * rows + r, column after column. A part that only gets wider uses the cells after it,
// and nothing moves. A part whose rows change moves as a whole.
//
// A part keeps its place if it can. Otherwise it moves to a gap, with some columns to grow. If no
// gap is large enough, all parts get new places, and the free cells are divided among them.
//
// Arithmetic only: the backend moves the contents. One owner.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/ids.h"

namespace penstock::shard {

// A part of the step plan.
struct PartRequest {
  std::vector<SlotId> rows;
  std::vector<std::uint32_t> lengths;  // positions that each row has, <= width
  std::uint32_t width = 0;
};

class CellLayout {
 public:
  struct Part {
    std::vector<SlotId> rows;
    std::uint32_t width = 0;
    std::uint32_t base = 0;

    std::uint32_t Cells() const { return static_cast<std::uint32_t>(rows.size()) * width; }
    std::uint32_t Cell(std::uint32_t row, std::uint32_t position) const {
      return base + position * static_cast<std::uint32_t>(rows.size()) + row;
    }
  };
  struct Place {
    std::uint32_t part = 0;
    std::uint32_t row = 0;
  };
  // Contents to move: from[i] -> to[i]. All must be read before any is written.
  struct Moves {
    std::vector<std::uint32_t> from;
    std::vector<std::uint32_t> to;
    std::vector<Place> joined;  // new rows
  };

  explicit CellLayout(std::uint32_t cells = 0) : cells_(cells) {}

  // Makes the store hold exactly these parts, in this order. They have at most cells() cells. The
  // result is valid until the next call.
  const Moves& Arrange(std::span<const PartRequest> parts);

  std::uint32_t cells() const { return cells_; }
  std::uint32_t allocated() const;
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

  void KeepPlaces(std::span<const PartRequest> parts);
  bool FillGaps();
  void PlaceAll();
  void CollectMoves(std::span<const PartRequest> parts);

  std::uint32_t cells_;
  std::vector<Part> parts_;
  std::unordered_map<std::uint32_t, Place> places_;  // by slot
  std::vector<Part> next_;
  Moves moves_;
};

}  // namespace penstock::shard
