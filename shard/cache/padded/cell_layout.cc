#include "shard/cache/padded/cell_layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/status.h"

namespace penstock::shard {

absl::StatusOr<CellsArranged> CellLayout::Arrange(std::span<const CellPart> parts) {
  std::uint64_t wanted = 0;
  for (const CellPart& part : parts) wanted += std::uint64_t{part.rows.size()} * part.width;
  if (wanted > cells_) {
    return BadValue("cells", std::to_string(wanted), "at most " + std::to_string(cells_));
  }
  KeepPlaces(parts);
  if (!FillGaps()) PlaceAll();
  CollectMoves(parts);
  std::swap(parts_, next_);
  places_.clear();
  for (std::uint32_t p = 0; p < parts_.size(); ++p) {
    for (std::uint32_t row = 0; row < parts_[p].rows.size(); ++row) {
      places_[parts_[p].rows[row].value()] = {p, row};
    }
  }
  return CellsArranged{wanted, moves_.from.size()};
}

// Parts with the same rows as before stay, unless they now reach into the next one that stays.
void CellLayout::KeepPlaces(std::span<const CellPart> parts) {
  next_.clear();
  std::vector<std::size_t> stay;
  for (const CellPart& wanted : parts) {
    Part part{{}, wanted.width, kNowhere};
    for (const CellRow& row : wanted.rows) part.rows.push_back(row.slot);
    const auto same = std::find_if(parts_.begin(), parts_.end(),
                                   [&part](const Part& old) { return old.rows == part.rows; });
    if (same != parts_.end()) {
      part.base = same->base;
      stay.push_back(next_.size());
    }
    next_.push_back(std::move(part));
  }
  std::sort(stay.begin(), stay.end(),
            [this](std::size_t a, std::size_t b) { return next_[a].base < next_[b].base; });
  for (std::size_t i = 0; i < stay.size(); ++i) {
    Part& part = next_[stay[i]];
    const std::uint32_t end = i + 1 < stay.size() ? next_[stay[i + 1]].base : End();
    if (part.base + std::uint64_t{part.Cells()} > end) part.base = kNowhere;
  }
}

// Puts every part without a place into the largest gap, the largest part first. Returns false if a
// gap is too small.
bool CellLayout::FillGaps() {
  struct Gap {
    std::uint32_t base;
    std::uint32_t cells;
  };
  std::vector<const Part*> placed;
  std::vector<Part*> unplaced;
  for (Part& part : next_) {
    if (part.base == kNowhere) unplaced.push_back(&part);
    if (part.base != kNowhere) placed.push_back(&part);
  }
  if (unplaced.empty()) return true;
  std::sort(placed.begin(), placed.end(), [](auto* a, auto* b) { return a->base < b->base; });
  std::stable_sort(unplaced.begin(), unplaced.end(),
                   [](auto* a, auto* b) { return a->Cells() > b->Cells(); });
  std::vector<Gap> gaps;
  std::uint32_t end = first_;
  for (const Part* part : placed) {
    gaps.push_back({end, part->base - end});
    end = part->base + part->Cells();
  }
  gaps.push_back({end, End() - end});
  for (Part* part : unplaced) {
    Gap& gap = *std::max_element(gaps.begin(), gaps.end(),
                                 [](const Gap& a, const Gap& b) { return a.cells < b.cells; });
    const std::uint64_t wanted = std::uint64_t{part->width + kRoomColumns} * part->rows.size();
    if (wanted > gap.cells) return false;
    // Half of the free cells stay before it: the part there grows as well.
    const std::uint32_t room =
        gap.base == first_ ? 0 : static_cast<std::uint32_t>(gap.cells - wanted) / 2;
    part->base = gap.base + room;
    const std::uint32_t used = room + static_cast<std::uint32_t>(wanted);
    gap = {gap.base + used, gap.cells - used};
  }
  return true;
}

void CellLayout::PlaceAll() {
  std::uint64_t used = 0;
  std::uint64_t rows = 0;
  for (const Part& part : next_) {
    used += part.Cells();
    rows += part.rows.size();
  }
  const std::uint64_t columns = (cells_ - used) / std::max<std::uint64_t>(rows, 1);
  std::uint64_t base = first_;
  for (Part& part : next_) {
    part.base = static_cast<std::uint32_t>(base);
    base += part.rows.size() * (part.width + columns);
  }
}

void CellLayout::CollectMoves(std::span<const CellPart> parts) {
  moves_.from.clear();
  moves_.to.clear();
  for (std::uint32_t p = 0; p < next_.size(); ++p) {
    const Part& part = next_[p];
    for (std::uint32_t row = 0; row < part.rows.size(); ++row) {
      const CellRow& wanted = parts[p].rows[row];
      const auto before = places_.find(wanted.slot.value());
      const Part* old = before == places_.end() ? nullptr : &parts_[before->second.part];
      if (old != nullptr && old->base == part.base && old->rows == part.rows) {
        break;  // the part has not moved
      }
      for (std::uint32_t position = 0; position < wanted.length; ++position) {
        moves_.from.push_back(old != nullptr ? old->Cell(before->second.row, position)
                                             : InBlocks(wanted.blocks, position, block_size_));
        moves_.to.push_back(part.Cell(row, position));
      }
    }
  }
}

}  // namespace penstock::shard
