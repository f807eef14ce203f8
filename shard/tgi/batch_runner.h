// One step of a batch as one or more plans: each at most as large as the engine's step.
//
// One owner: the model thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "common/time.h"
#include "shard/tgi/member.h"

namespace penstock::shard {

// Gives epoch and step to the plan and executes it on this rank.
using RunPlan = std::function<absl::StatusOr<StepResult>(StepPlan& plan)>;

class BatchRunner {
 public:
  BatchRunner(RunPlan run, std::uint32_t max_step_tokens, SequencePool& pool);

  // Every member that has not stopped computes its `next` positions; `sampled`, `finish`, `error`,
  // `computed` and `prompt_logprobs` tell what came of it. An error ends the group.
  absl::Status Run(const Members& members);

  // Of the engine, in the last Run.
  Duration engine_time() const { return engine_time_; }

 private:
  void StartNew(const Members& members);
  absl::Status Add(Member& member);
  absl::Status Flush();
  static void TakeIn(SequenceResult& result, Member& member);

  const RunPlan run_;
  const std::uint32_t max_step_tokens_;
  SequencePool& pool_;
  StepPlan plan_;
  std::vector<Member*> named_;  // by segment of plan_
  std::uint32_t rows_ = 0;
  Duration engine_time_{0};
};

}  // namespace penstock::shard
