#include "shard/executor/cell_rows.h"

#include "common/status.h"

namespace penstock::shard {

absl::Status CellRows::Arrange(const StepPlan& plan, SlotTable& slots, Backend& backend,
                               CellUse& use) {
  parts_.clear();
  for (const SegmentGroup& group : plan.groups) {
    if (group.rows.empty()) continue;
    CellPart& part = parts_.emplace_back();
    part.width = group.width;
    for (const SlotId slot : group.rows) {
      const Sequence& sequence = slots.at(slot);
      CellRow& row = part.rows.emplace_back(CellRow{slot, sequence.committed, {}});
      if (!sequence.in_cells) row.blocks = sequence.tables.front();
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(const CellsArranged arranged, backend.ArrangeCells(parts_));
  use.allocated = arranged.allocated;
  use.copied = arranged.copied;
  for (const CellPart& part : parts_) {
    for (const CellRow& row : part.rows) {
      Sequence& sequence = slots.at(row.slot);
      sequence.in_cells = true;
      for (auto& table : sequence.tables) table.clear();
    }
  }
  return absl::OkStatus();
}

void CellRows::CountFilled(const StepPlan& plan, const SlotTable& slots, CellUse& use) {
  for (const SegmentGroup& group : plan.groups) {
    for (const SlotId slot : group.rows) use.filled += slots.at(slot).committed;
  }
}

}  // namespace penstock::shard
