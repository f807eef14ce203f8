// The padded KV layout on a rank: keeps the backend's padded KV rows as the groups of each plan
// want them. See SegmentGroup and docs/decisions/0014. Groups of a plan with the paged layout
// have no rows, so all calls do nothing.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>
#include <vector>

#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "shard/backend/backend.h"
#include "shard/executor/slot_table.h"

namespace penstock::shard {

class PaddedRows {
 public:
  // `backend` outlives this object.
  explicit PaddedRows(Backend& backend) : backend_(backend) {}

  // After the control part of `plan` was applied: arranges the rows of its groups. A sequence that
  // is new to them is copied out of its blocks.
  absl::Status Arrange(const StepPlan& plan, SlotTable& slots, CellUse& use);

  // For a warm-up with so many cells: one sub-batch of these decodes, whose rows are copied out of
  // their blocks.
  absl::Status ArrangeCopies(std::uint32_t cells, std::span<RaggedSegment> decodes);

  // After the step: how many positions of the rows hold K and V.
  void CountFilled(const StepPlan& plan, const SlotTable& slots, CellUse& use) const;

 private:
  Backend& backend_;
  std::vector<CellPart> parts_;  // of the last plan
};

}  // namespace penstock::shard
