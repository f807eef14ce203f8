// The step plan that a replica group is making. Its lists keep their memory from step to step.
//
// Not synchronised; one owner, the GroupScheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "scheduler/config.h"
#include "scheduler/kv/block_cache.h"
#include "scheduler/output.h"
#include "scheduler/step/sequence.h"
#include "scheduler/step/step_composer.h"
#include "scheduler/step/steps_in_flight.h"

namespace penstock::scheduler {

class StepDraft {
 public:
  explicit StepDraft(Prefill mode) : composer_({}, mode) {}

  // The step being composed. Between steps: the step that is composed next.
  StepId step() const { return step_; }
  // Empties the draft.
  void Begin(StepBudget budget, StepTimeLimit limit);

  StepComposer& composer() { return composer_; }
  const StepComposer& composer() const { return composer_; }
  StepPlan& plan() { return plan_; }
  std::vector<InFlightReference>& references() { return references_; }
  // A request was admitted into this step.
  bool admitted() const { return admitted_; }
  void set_admitted() { admitted_ = true; }

  // The step starts the sequence. Its first start emits Started.
  void Start(Sequence& sequence, Outputs& out);
  // The plan names the sequence and yields at most `max_tokens` for it.
  void Refer(Sequence& sequence, std::uint32_t max_tokens) {
    sequence.tokens_in_flight += max_tokens;
    ++sequence.plans_in_flight;
    sequence.last_plan = step_;
    references_.push_back({sequence.id, sequence.slot, max_tokens});
  }
  // The sequence's first own block begins with the tail of a pinned prefix, which is copied.
  void CopyTail(Sequence& sequence, BlockCache& cache);
  // The sequence, which the step starts, continues from its snapshot.
  void RestoreState(Sequence& sequence, BlockCache& cache);
  // A snapshot of the sequence after the step is attached to the node, if one can be replaced.
  void SaveState(const Sequence& sequence, BlockId node, BlockCache& cache);

  // Emits the plan and moves on to the next step.
  void Finish(GroupId group, Epoch epoch, Outputs& out);

 private:
  StepId step_{1};
  StepComposer composer_;
  StepPlan plan_;
  std::vector<RequestId> requests_;  // of plan_.starts
  std::vector<InFlightReference> references_;
  bool admitted_ = false;
};

}  // namespace penstock::scheduler
