// One rank's life in a group, call by call: checks what a call says against the engine's facts and
// the agreed limits, then lets the engine do it. Everything that the gRPC service posts to the
// model thread ends here, so the whole protocol can be tested without a socket.
//
// One owner: the model thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "shard/service/plan_checker.h"
#include "shard/service/plan_digest.h"
#include "shard/service/rank_engine.h"

namespace penstock::shard {

class GroupSession {
 public:
  // `engine` outlives the session.
  explicit GroupSession(RankEngine& engine) : engine_(engine) {}

  // FAILED_PRECONDITION names a fingerprint, rank or world size that is not this shard's;
  // INVALID_ARGUMENT names a limit out of range.
  absl::Status Configure(const GroupSetup& setup);
  absl::StatusOr<WarmupReport> Warmup();

  // The minimum over the ranks, at most what this rank's Warmup gave. Gives cache bytes.
  absl::StatusOr<std::uint64_t> Commit(const PoolSize& pool);

  void OpenExecute();

  // Checks, executes, and puts the digest into the result. Only rank 0 keeps sequences in it.
  absl::StatusOr<StepResult> Step(const StepPlan& plan);
  // The same for a driver that sits beside each rank: every rank keeps its sequences. Logprobs are
  // rank 0's alone.
  absl::StatusOr<StepResult> StepWithTokens(const StepPlan& plan);
  // The same in two halves, as RankEngine::Begin. After false Step is called with the same plan,
  // once no step is pending. Collect gives the result of the oldest.
  absl::StatusOr<bool> Begin(std::shared_ptr<const StepPlan> plan, std::function<void()> ready);
  absl::StatusOr<StepResult> Collect();
  std::size_t pending() const { return pending_.size(); }

  void CloseExecute();

 private:
  StepResult Stamp(const StepPlan& plan, StepResult result);
  absl::Status CheckLimits(const GroupLimits& limits) const;

  RankEngine& engine_;
  GroupSetup setup_;
  PoolSize fits_;  // of the last Warmup
  std::optional<PlanChecker> checker_;
  PlanDigest digest_;
  std::deque<std::shared_ptr<const StepPlan>> pending_;  // begun, not collected
  bool checked_ = false;                                 // the next plan, by a Begin that was false
};

}  // namespace penstock::shard
