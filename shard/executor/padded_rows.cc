#include "shard/executor/padded_rows.h"

#include <algorithm>

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
      if (!sequence.row) row.blocks = sequence.tables.front();
    }
  }
  if (parts_.empty() && !had_rows) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const CellsArranged arranged, backend_.ArrangeCells(parts_));
  use.allocated = arranged.allocated;
  use.copied = arranged.copied;
  for (const CellPart& part : parts_) {
    for (const CellRow& row : part.rows) {
      RankSequence& sequence = slots.at(row.slot);
      sequence.row = row.slot;
      for (auto& table : sequence.tables) table.clear();
    }
  }
  return absl::OkStatus();
}

absl::Status PaddedRows::ArrangeCopies(std::uint32_t cells, std::span<RaggedSegment> decodes) {
  if (cells == 0 || decodes.empty()) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(backend_.ArrangeCells({}).status());
  CellPart part;
  for (RaggedSegment& decode : decodes) {
    decode.row = decode.state;
    part.width = std::max(part.width, decode.context_length + 1);
    part.rows.push_back({*decode.row, decode.context_length, decode.blocks});
  }
  return backend_.ArrangeCells({&part, 1}).status();
}

void PaddedRows::CountFilled(const StepPlan& plan, const SlotTable& slots, CellUse& use) const {
  for (const SegmentGroup& group : plan.groups) {
    for (const SlotId slot : group.rows) use.filled += slots.at(slot).committed;
  }
}

}  // namespace penstock::shard
