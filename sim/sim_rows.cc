// The part of SimGroup that keeps the rows of the padded KV layout.
#include <algorithm>

#include "sim/sim_group.h"

namespace penstock::sim {

// Positions with K/V.
std::uint32_t SimGroup::Written(const Slot& slot) const {
  if (slot.generated == 0) return slot.computed;
  const bool written = slot.owes_pick || slot.start.sampling.Candidates() > 0;
  const std::uint32_t newest = written ? 0 : 1;
  return slot.start.prompt_length + slot.generated - newest;
}

void SimGroup::ApplyRows(const StepPlan& plan) {
  std::map<SlotId, std::uint32_t> before;
  for (auto& [id, slot] : slots_) {
    before[id] = slot.width;
    slot.width = 0;
  }
  for (const SegmentGroup& group : plan.groups) {
    cell_use_.allocated += group.rows.size() * std::uint64_t{group.width};
    for (const SlotId id : group.rows) ApplyRow(id, group.width);
  }
  for (auto& [id, slot] : slots_) {
    if (slot.in_cells && slot.width > 0 && before[id] == 0 && !slot.table.empty()) {
      slot.table.clear();
    } else if (slot.in_cells && slot.width > 0 && before[id] == 0) {
      Complain("a row that left its part has lost its cells");
    }
    slot.row.resize(cells_.empty() ? 0 : slot.width);
  }
  if (cell_use_.allocated > capacity_.cells) {
    Complain(std::to_string(cell_use_.allocated) + " cells of " + std::to_string(capacity_.cells));
  }
  CheckRowsOfSegments(plan);
}

void SimGroup::ApplyRow(SlotId id, std::uint32_t width) {
  const auto it = slots_.find(id);
  if (it == slots_.end()) return Complain("a row is a started slot");
  Slot& slot = it->second;
  if (slot.width > 0) return Complain("a row stands in one part");
  if (slot.computed < slot.start.prompt_length) Complain("a row has its whole prompt");
  if (Written(slot) > width) Complain("a part is as wide as its longest row");
  slot.width = width;
  if (slot.in_cells) return;
  slot.in_cells = true;
  cell_use_.copied += Written(slot);
  const std::uint32_t size = capacity_.block_size;
  for (std::uint32_t p = 0; p < Written(slot) && !cells_.empty(); ++p) {
    slot.row.push_back(cells_[std::size_t{slot.table[p / size].value()} * size + p % size]);
  }
}

void SimGroup::CheckRowsOfSegments(const StepPlan& plan) {
  for (const SegmentGroup& group : plan.groups) {
    for (const std::uint32_t index : group.segments) {
      if (index >= plan.segments.size()) return Complain("a group names a segment of the plan");
      const SlotId slot = plan.segments[index].slot;
      const bool inside = std::find(group.rows.begin(), group.rows.end(), slot) != group.rows.end();
      const auto it = slots_.find(slot);
      if (it == slots_.end() || it->second.in_cells == inside) continue;
      Complain("the decodes of a part are those of its rows");
    }
  }
}

History SimGroup::ReadRow(const Slot& slot, std::uint32_t position) {
  if (cells_.empty()) return slot.written;
  const std::uint32_t size = capacity_.block_size;
  for (std::uint32_t first = 0; first <= position; first += size) {
    const std::uint32_t last = std::min(position, first + size - 1);
    const std::uint32_t block = first / size;
    const History right = block < slot.block_ends.size() ? slot.block_ends[block] : slot.written;
    const History cell = last < slot.row.size() ? slot.row[last] : 0;
    if (cell == right) continue;
    Complain("sequence " + std::to_string(slot.start.sequence.value()) + " reads cell " +
             std::to_string(last) + " of its row, which does not hold its tokens");
    return Mix(cell, slot.written);
  }
  return slot.written;
}

}  // namespace penstock::sim
