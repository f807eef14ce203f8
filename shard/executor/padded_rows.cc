#include "shard/executor/padded_rows.h"

#include "common/status.h"

namespace penstock::shard {

absl::Status PaddedRows::Arrange(const StepPlan& plan, SlotTable& slots, CellUse& use) {
  const bool had_rows = !parts_.empty();
  parts_.clear();
  for (const SegmentGroup& group : plan.groups) {
    if (group.rows.empty()) continue;
    CellPart& part = parts_.emplace_back();
    part.width = group.width;
    for (const SlotId slot : group.rows) {
      const RankSequence& sequence = slots.at(slot);
      CellRow& row = part.rows.emplace_back(CellRow{slot, sequence.committed, {}});
      if (!sequence.padded) row.blocks = sequence.tables.front();
    }
  }
  if (parts_.empty() && !had_rows) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const CellsArranged arranged, backend_.ArrangeCells(parts_));
  use.allocated = arranged.allocated;
  use.copied = arranged.copied;
  for (const CellPart& part : parts_) {
    for (const CellRow& row : part.rows) {
      RankSequence& sequence = slots.at(row.slot);
      sequence.padded = true;
      for (auto& table : sequence.tables) table.clear();
    }
  }
  return absl::OkStatus();
}

void PaddedRows::CountFilled(const StepPlan& plan, const SlotTable& slots, CellUse& use) const {
  for (const SegmentGroup& group : plan.groups) {
    for (const SlotId slot : group.rows) use.filled += slots.at(slot).committed;
  }
}

}  // namespace penstock::shard
