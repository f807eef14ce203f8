// The calls of one rank in a group. Checks each call against the facts of the engine and the agreed
// limits, then passes it to the engine. All tasks that the gRPC service posts to the model thread
// end here, so the protocol can be tested without a socket.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "shard/service/plan_checker.h"
#include "shard/service/rank_engine.h"

namespace penstock::shard {

bool Offers(const v1::DescribeResponse& facts, std::string_view capability);

// From the blocks of each KV group. One number is for all groups.
absl::StatusOr<KvBlocks> BlocksOf(const google::protobuf::RepeatedField<std::uint32_t>& blocks);

class GroupSession {
 public:
  // `engine` outlives the session.
  explicit GroupSession(RankEngine& engine) : engine_(engine) {}

  // FAILED_PRECONDITION names a fingerprint, rank or world size that differs from this shard's.
  // INVALID_ARGUMENT names a limit that is out of range.
  absl::Status Configure(const v1::ConfigureRequest& setup);
  absl::StatusOr<v1::WarmupResponse> Warmup();

  // `pool` is the minimum of all ranks, so not larger than what Warmup returned. Returns the bytes
  // of the cache.
  absl::StatusOr<std::uint64_t> Commit(const PoolSize& pool);

  void OpenExecute();

  // Checks and executes the plan. The result has the digest; only rank 0 returns sequences.
  absl::StatusOr<StepResult> Step(const StepPlan& plan);
  // The same for a driver that calls each rank itself: every rank returns its sequences. Only those
  // of rank 0 have logprobs.
  absl::StatusOr<StepResult> StepWithTokens(const StepPlan& plan);
  // The same in two halves, as in RankEngine. If Begin returns false, Step must be called with the
  // same plan after all pending steps are collected. Collect returns the result of the oldest.
  absl::StatusOr<bool> Begin(std::shared_ptr<const StepPlan> plan, std::function<void()> ready);
  absl::StatusOr<StepResult> Collect();

  void CloseExecute();

  // FAILED_PRECONDITION if the group of this epoch is not committed.
  absl::Status Embed(const v1::EmbedRequest& request, v1::EmbedResponse& response);

 private:
  StepResult Stamp(const StepPlan& plan, StepResult result);

  RankEngine& engine_;
  v1::ConfigureRequest setup_;
  PoolSize fits_;  // of the last Warmup
  std::optional<PlanChecker> checker_;
  // The digest of every plan and result since OpenExecute. Ranks that saw the same plans and agreed
  // on the same tokens have the same digest. It does not detect numerical corruption.
  std::uint64_t digest_ = 0;
  std::deque<std::shared_ptr<const StepPlan>> pending_;  // begun, not collected
  bool checked_ = false;  // the next plan, by a Begin that returned false
};

}  // namespace penstock::shard
