// What a plan may do with the padded KV rows (SegmentGroup, docs/decisions/0014). The rows of a
// plan fit into their memory, and writes fit into the width of their row. A sequence that has lost
// its row is not computed again. In the paged layout there are no rows, and no plan breaks a rule.
//
// PlanChecker asks; it knows the slots.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"

namespace penstock::shard {

class RowRules {
 public:
  RowRules() = default;
  RowRules(std::uint32_t slots, std::uint32_t cells) : cells_(cells), rows_(slots) {}

  // The sequence of the slot has ended.
  void End(SlotId slot) { rows_[slot.value()] = Row(); }
  // Whether the sequence has a padded KV row and no blocks, or had one.
  bool Has(SlotId slot) const { return rows_[slot.value()].given; }

  // For each plan, in this order: BeginPlan, Place for each row, EndPlan, CheckWrite for each
  // decode, CheckSegments. After an error the state is undefined.
  void BeginPlan();
  // `committed`: how many positions of the sequence the cache holds already.
  absl::Status Place(SlotId slot, std::uint32_t width, std::uint32_t committed);
  absl::Status EndPlan();
  // `end`: after the last position that the decode writes.
  absl::Status CheckWrite(const Segment& decode, std::uint32_t committed, std::uint64_t end) const;
  absl::Status CheckSegments(const StepPlan& plan) const;

 private:
  struct Row {
    std::uint32_t width = 0;  // in the present plan
    bool given = false;
    bool lost = false;
  };

  std::uint32_t cells_ = 0;
  std::uint64_t used_ = 0;  // cells of the present plan
  std::vector<Row> rows_;   // by slot
};

}  // namespace penstock::shard
