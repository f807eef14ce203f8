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

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/plan/group.h"
#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"

namespace penstock::shard {

// Layers that share one block table.
struct KvGroupFacts {
  std::uint64_t bytes_per_token = 0;  // K and V of all layers of the group, of this rank
  std::uint32_t layers = 0;
  std::uint32_t window = 0;  // 0 = full attention
};

// The answer to Describe. Before Load only rank, world_size and model_id are set.
struct EngineFacts {
  std::string model_id;
  std::string model_type;
  std::string dtype;
  std::string device;
  std::string backend;  // for logs
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::uint32_t vocabulary = 0;
  std::vector<TokenId> eos_token_ids;
  std::optional<TokenId> bos_token_id;
  std::uint32_t max_position = 0;  // longest sequence that the model supports
  std::vector<KvGroupFacts> kv_groups;
  std::uint32_t block_size = 16;
  bool padded_attention = false;
  std::vector<std::string> capabilities;
  std::string fingerprint;
  std::uint64_t parameters = 0;
  std::uint64_t weight_bytes = 0;  // of this rank
};

struct LoadStage {
  std::string stage;
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_per_second = 0;
  std::chrono::milliseconds eta{0};
};
using LoadCallback = std::function<void(const LoadStage&)>;

struct GroupLimits {
  std::uint32_t max_step_tokens = 0;
  std::uint32_t max_sequences = 0;        // slots
  std::uint32_t max_sequence_length = 0;  // tokens, prompt and output
  std::uint64_t kv_cache_bytes = 0;       // 0: the setting of the engine
  std::uint32_t max_decode_rows = 1;      // per sequence and step, without contrastive search
  std::uint32_t max_candidates = 0;       // rows of a contrastive sequence; 0 = no such sequences
  // If the grammar mask of a sequence is not ready, the step may return no token for it. False: the
  // step waits for the mask.
  bool late_masks = false;
};

struct GroupSetup {
  Epoch epoch;
  std::uint32_t world_size = 1;
  std::uint32_t rank = 0;
  std::string rendezvous;
  std::string fingerprint;
  GroupLimits limits;
};

struct WarmupReport {
  std::uint32_t blocks = 0;  // that fit into memory beside weights and scratch
  std::uint32_t cells = 0;   // positions of all padded KV rows; 0: paged layout
  std::vector<StepTimeSample> step_times;
  std::uint64_t peak_memory_bytes = 0;
};

// What the ranks agreed on: the minimum of their reports.
struct PoolSize {
  std::uint32_t blocks = 0;
  std::uint32_t cells = 0;
};

// Most steps that may be begun and not collected: one that runs, and the next one.
inline constexpr std::size_t kMaxStepsBegun = 2;

class RankEngine {
 public:
  virtual ~RankEngine() = default;

  virtual EngineFacts Facts() const = 0;

  virtual absl::Status Load(const LoadCallback& progress) = 0;

  // Joins the ranks of the group. May be called again with another epoch to form a new group.
  virtual absl::Status Configure(const GroupSetup& setup) = 0;
  virtual absl::StatusOr<WarmupReport> Warmup() = 0;

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

  // Frees all sequences and drops the steps that were begun.
  virtual void Reset() = 0;

  // Any thread. The current and all later calls end soon with an error.
  virtual void Interrupt() = 0;
};

}  // namespace penstock::shard
