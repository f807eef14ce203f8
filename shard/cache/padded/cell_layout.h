// Where rows of the padded KV layout lie: parts of `rows` x `width` cells in a store of fixed size.
// Cell (position p, row r) of a part is base + p * rows + r: column after column, right-padded. So
// a part that only gets wider takes the cells behind it and nothing moves; a part whose rows change
// moves as a whole.
//
// Parts keep their place while they can. What has to move goes where room is left, with some
// columns to grow; where none is, all parts are laid out anew with what is free divided among them.
//
// Arithmetic only: the backend moves the contents. One owner.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/ids.h"

namespace penstock::shard {

// A part as the plan wants it.
struct PartRequest {
  std::vector<SlotId> rows;
  std::vector<std::uint32_t> lengths;  // positions that each row holds already, <= width
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
  // Contents that change their cell: from[i] -> to[i]. All are read before any is written.
  struct Moves {
    std::vector<std::uint32_t> from;
    std::vector<std::uint32_t> to;
    std::vector<Place> joined;  // rows that no part had before
  };

  explicit CellLayout(std::uint32_t cells = 0) : cells_(cells) {}

  // From now on the store holds exactly these parts, in this order; their cells together are at
  // most cells(). Valid until the next call.
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
  // Columns that a part which moves wants to be able to grow by.
  static constexpr std::uint32_t kRoomColumns = 16;

  void KeepPlaces(std::span<const PartRequest> parts);
  bool FillGaps();
  void LayOutAnew();
  void CollectMoves(std::span<const PartRequest> parts);

  std::uint32_t cells_;
  std::vector<Part> parts_;
  std::unordered_map<std::uint32_t, Place> places_;  // by slot
  std::vector<Part> next_;
  Moves moves_;
};

}  // namespace penstock::shard
