// The padded KV layout on the shard: a plan's groups as parts of the backend's row store, and what
// they hold. See SegmentGroup and docs/decisions/0014.
//
// One owner: the model thread.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "shard/backend/backend.h"
#include "shard/executor/slot_table.h"

namespace penstock::shard {

class CellRows {
 public:
  // Once the control part of `plan` is applied: the backend takes up its groups, and rows that join
  // leave their blocks.
  absl::Status Arrange(const StepPlan& plan, SlotTable& slots, Backend& backend, CellUse& use);

  // Once the step has run.
  static void CountFilled(const StepPlan& plan, const SlotTable& slots, CellUse& use);

 private:
  std::vector<CellPart> parts_;
};

}  // namespace penstock::shard
