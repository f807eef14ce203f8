// Run-ahead: the device feeds the tokens of one step into the next. So a step begins before the
// host knows the result of the step before it.
//
// This is possible if the device samples the token of every row and no row needs the host in
// between. So it excludes drafts (--speculate), grammars, contrastive search, log-probabilities of
// a prompt and the padded KV layout. Prompt chunks are possible.
//
// The host learns late that a sequence has ended. Such a sequence computes one more row, in its own
// block, and nothing is reported of it.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "common/time.h"
#include "shard/backend/device_sampler.h"
#include "shard/executor/slot_table.h"
#include "shard/executor/step_batch.h"
#include "shard/executor/token_selector.h"

namespace penstock::shard {

class StepsInFlight {
 public:
  // `device` may be null: then Begin must not be called. All outlive this object.
  StepsInFlight(DeviceSampler* device, SlotTable& slots, TokenSelector& selector);

  bool empty() const { return steps_.empty(); }

  // Whether the plan, whose control part is not applied yet, leaves the steps in flight valid.
  bool Allow(const StepPlan& plan) const;

  // Whether no segment of the plan needs the host. The control part of the plan is applied.
  bool CanRunAhead(const StepPlan& plan) const;

  // Enqueues the step. FitsDevice(batch) of the selector was true. `ready` as in
  // RankEngine::Begin. Internal if kMaxStepsInFlight steps are in flight already.
  absl::Status Begin(const StepBatch& batch, std::function<void()> ready);

  // Waits for the oldest step and adds its sequences to `result`.
  absl::Status Collect(StepResult& result);

  // Waits for all steps and drops their results.
  void Drop();

 private:
  struct Row {
    SlotId slot;
    SequenceId sequence;
    std::uint32_t committed = 0;  // after the step
    bool samples = false;
  };
  struct Step {
    std::vector<Row> rows;
    std::uint32_t tokens = 0;
    Time begun;
  };

  static Step Commit(const StepBatch& batch, SlotTable& slots);

  DeviceSampler* const device_;
  SlotTable& slots_;
  TokenSelector& selector_;
  std::deque<Step> steps_;
  std::vector<DeviceToken> tokens_;  // of the step that is collected
  Time last_collected_{};
};

}  // namespace penstock::shard
