// What executes plans: the seam between the gRPC service and a model. The shard's executor and the
// simulated shard implement it; the service is the same for both.
//
// Threading: everything runs on the one model thread of the rank, except Interrupt, which may come
// from any thread, and Facts before Load was called. Calls come in the order
//   Load, (Configure, Warmup, Commit, (Reset, Execute…, Reset)*)*
// and the service sees to it. A plan that reaches Execute has passed the PlanChecker.
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
  std::uint64_t bytes_per_token = 0;  // of this rank, K and V, all layers of the group
  std::uint32_t layers = 0;
  std::uint32_t window = 0;  // 0 = full attention
};

// Answer to Describe. Before Load only rank, world_size and model_id need be filled.
struct EngineFacts {
  std::string model_id;
  std::string model_type;
  std::string dtype;
  std::string device;
  std::string backend;  // what computes, for people
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::uint32_t vocabulary = 0;
  std::vector<TokenId> eos_token_ids;
  std::optional<TokenId> bos_token_id;
  std::uint32_t max_position = 0;  // longest sequence that the model was made for
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
  std::uint64_t kv_cache_bytes = 0;       // 0 = the engine's own setting
  std::uint32_t max_decode_rows = 1;      // per sequence and step, without contrastive search
  std::uint32_t max_candidates = 0;       // rows of a contrastive sequence; 0 = no such sequences
  // The driver takes a result without a token where one was due, of a sequence whose grammar has no
  // mask ready; false: the step waits for it.
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
  std::uint32_t blocks = 0;  // that fit beside weights and scratch
  std::uint32_t cells = 0;   // of the padded KV layout, beside those blocks; 0 = paged
  std::vector<StepTimeSample> step_times;
  std::uint64_t peak_memory_bytes = 0;
};

// What the ranks agreed on; nothing above what any of them reported.
struct PoolSize {
  std::uint32_t blocks = 0;
  std::uint32_t cells = 0;
};

// Steps that an engine may have begun and not collected: one that runs, and the one behind it.
inline constexpr std::size_t kMaxStepsBegun = 2;

class RankEngine {
 public:
  virtual ~RankEngine() = default;

  virtual EngineFacts Facts() const = 0;

  virtual absl::Status Load(const LoadCallback& progress) = 0;

  // Joins the ranks of the group. May be called again, with another epoch, to form it anew.
  virtual absl::Status Configure(const GroupSetup& setup) = 0;
  virtual absl::StatusOr<WarmupReport> Warmup() = 0;

  // Allocates the cache; gives its bytes. Nothing after it may fail for memory.
  virtual absl::StatusOr<std::uint64_t> Commit(const PoolSize& pool) = 0;

  // One step. The result holds a SequenceResult for each segment whose slot had not finished
  // before, with tokens on every rank. `digest` and `timings.queued` are the service's. An error
  // ends the group; what concerns one sequence alone is its ShardFinish::kError.
  virtual absl::StatusOr<StepResult> Execute(const StepPlan& plan) = 0;

  // In two halves, for a device that can compute a step while the host prepares the next: Begin
  // checks nothing and waits for nothing; Collect gives the results in order and waits for the
  // oldest. `ready` is called once, on any thread, when Collect would not wait for this step.
  // False: this step cannot run ahead; it is to be executed once every step that was begun is
  // collected.
  virtual absl::StatusOr<bool> Begin(const StepPlan&, std::function<void()> /*ready*/) {
    return false;
  }
  virtual absl::StatusOr<StepResult> Collect() {
    return absl::InternalError("this engine begins no steps");
  }

  // Frees all sequences; steps that were begun are dropped.
  virtual void Reset() = 0;

  // Any thread: the present and all later calls end soon, with an error.
  virtual void Interrupt() = 0;
};

}  // namespace penstock::shard
