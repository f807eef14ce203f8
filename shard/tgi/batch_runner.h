// Runs one step of a batch as one or more plans, none larger than a step of the engine.
//
// Threading: the model thread.
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

// Sets epoch and step of the plan and executes it on this rank.
using RunPlan = std::function<absl::StatusOr<StepResult>(StepPlan& plan)>;

class BatchRunner {
 public:
  BatchRunner(RunPlan run, std::uint32_t max_step_tokens, SequencePool& pool);

  // Computes the `next` positions of every member that has not stopped. Sets their `sampled`,
  // `finish`, `error`, `computed` and `prompt_logprobs`. An error ends the group.
  absl::Status Run(const Members& members);

  // How long the engine computed in the last Run.
  Duration engine_time() const { return engine_time_; }

 private:
  void StartNew(const Members& members);
  absl::Status Add(Member& member);
  absl::Status Flush();
  static void TakeResult(SequenceResult& result, Member& member);

  const RunPlan run_;
  const std::uint32_t max_step_tokens_;
  SequencePool& pool_;
  StepPlan plan_;
  std::vector<Member*> segment_members_;  // by segment of plan_
  std::uint32_t rows_ = 0;
  Duration engine_time_{0};
};

}  // namespace penstock::shard
