// The interface between the gRPC service and what executes plans. ModelRank runs a model; the
// simulated shard computes nothing. The service is the same for both.
//
// Threading: all calls come from the model thread of the rank, except Interrupt, which any thread
// may call, and Facts before Load. The service ensures this order:
//   Load, (Configure, Warmup, Commit, (Reset, Execute…, Reset)*)*
// Every plan has passed the PlanChecker.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/plan/embed_text.h"
#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "penstock/v1/shard.pb.h"
#include "shard/cache/paged/kv_blocks.h"

namespace penstock::shard {

// Stage and bytes; the service adds the end of loading.
using LoadCallback = std::function<void(const v1::LoadProgress&)>;

// What the ranks agreed on: the minimum of their reports.
struct PoolSize {
  KvBlocks blocks;
  std::uint32_t cells = 0;
  std::uint32_t snapshots = 0;  // of recurrent states
};

class BackendAdapter;

// An adapter that has been read and checked.
struct ReadyAdapter {
  std::shared_ptr<const BackendAdapter> adapter;
  std::string folder;
  std::uint32_t rank = 0;   // the largest of its matrices
  std::uint64_t bytes = 0;  // of this rank
};

// Most steps that may be begun and not collected: one that runs, and the next one.
inline constexpr std::size_t kMaxStepsBegun = 2;

class RankEngine {
 public:
  virtual ~RankEngine() = default;

  // Before Load only rank, world_size, model_id and block_size are set.
  virtual v1::DescribeResponse Facts() const = 0;

  virtual absl::Status Load(const LoadCallback& progress) = 0;

  // Joins the ranks of the group. May be called again with another epoch to form a new group.
  virtual absl::Status Configure(const v1::ConfigureRequest& setup) = 0;
  virtual absl::StatusOr<v1::WarmupResponse> Warmup() = 0;

  // Allocates the cache and returns its bytes. Later calls need no more memory.
  virtual absl::StatusOr<std::uint64_t> Commit(const PoolSize& pool) = 0;

  // Executes one step. The result has a SequenceResult, with tokens on every rank, for each segment
  // whose slot had not finished before. The service sets `digest` and `timings.queued`. An error
  // ends the group. What concerns one sequence alone gives that sequence ShardFinish::kError.
  virtual absl::StatusOr<StepResult> Execute(const StepPlan& plan) = 0;

  // The same in two halves, for a device that computes a step while the host prepares the next.
  // Begin does not wait. Collect waits for the oldest step and returns its result. `ready` is
  // called once, on any thread, when Collect would not wait for this step. If Begin returns false,
  // the step cannot run ahead: Execute must be called after all begun steps are collected.
  virtual absl::StatusOr<bool> Begin(const StepPlan&, std::function<void()> /*ready*/) {
    return false;
  }
  virtual absl::StatusOr<StepResult> Collect() {
    return absl::InternalError("this engine cannot begin steps");
  }

  // Vectors of texts, of a model that gives some. An InvalidArgument is about the texts; other
  // errors end the group.
  virtual absl::StatusOr<std::vector<std::vector<float>>> Embed(std::span<const EmbedText>) {
    return absl::UnimplementedError("the model gives no vectors");
  }

  // Adapters. ReadAdapter may be called from any thread after Load; its error is one line, the same
  // on every rank. Add replaces an adapter with that id. A sequence that starts with an unknown
  // id ends with ShardFinish::kError.
  virtual absl::StatusOr<ReadyAdapter> ReadAdapter(const std::string& /*folder*/) const {
    return absl::UnimplementedError("this shard has no adapters");
  }
  virtual void AddAdapter(const std::string& /*id*/, ReadyAdapter) {}
  virtual void RemoveAdapter(const std::string& /*id*/) {}

  // Frees all sequences and drops the steps that were begun.
  virtual void Reset() = 0;

  // Any thread. The current and all later calls end soon with an error.
  virtual void Interrupt() = 0;
};

}  // namespace penstock::shard
