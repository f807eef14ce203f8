// Everything that the scheduler asks for or reports, collected for each Apply. The caller sends the
// plans before it delivers events, so that a GPU never waits for a client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "common/request/decision.h"
#include "common/request/finish_reason.h"
#include "common/time.h"

namespace penstock::scheduler {

struct PlanOut {
  GroupId group;
  StepPlan plan;                    // to every rank of the group
  std::vector<RequestId> requests;  // of plan.starts, in the same order
};

// --- Events: per request, in order; exactly one terminal event (Finished or Failed), guarantee G2.

// The first plan that computes the request was made.
struct Started {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;
};

// Output tokens that follow those of the previous event without a gap (G3).
struct Tokens {
  std::uint32_t first_index = 0;  // index of tokens[0] in the request's output
  SampledTokens tokens;
};

// Logprobs of prompt tokens 1 to prompt_length - 1. Once, before the first Tokens.
struct PromptLogprobs {
  std::vector<float> logprobs;
  std::vector<PromptAlternatives> alternatives = {};  // for each of them, if asked for
};

struct Finished {
  FinishReason reason = FinishReason::kLength;
  std::uint32_t generated_tokens = 0;  // the final count; kStopString cuts the output to it
};

enum class FailureKind : std::uint8_t {
  kQueueFull,   // retry later
  kTooLarge,    // can never fit
  kDraining,    // the server shuts down
  kGroupLost,   // its group was lost
  kNoGroup,     // and no group could continue it within recovery_timeout
  kSuspect,     // it ran alone on a group that was lost, after two other losses
  kShardError,  // this sequence failed on the shard
};

struct Failed {
  FailureKind kind = FailureKind::kShardError;
  std::string message;  // one line for the client: field, value, limit
};

struct Event {
  RequestId request;
  std::variant<Started, PromptLogprobs, Tokens, Finished, Failed> what;
};

// What the prefix cache did.
struct PrefixUse {
  std::uint64_t looked_up_tokens = 0;  // of admitted requests, also after a preemption
  std::uint64_t hit_tokens = 0;        // of these, found
  std::uint64_t evicted_blocks = 0;
};

// What happened to a pinned prefix.
struct PinChange {
  enum class Kind : std::uint8_t { kKept, kUsed, kDropped };
  GroupId group;
  Kind kind = Kind::kKept;
  RequestId made_by;  // names the prefix
  RequestId by;       // kUsed: the request that used it
  std::uint32_t tokens = 0;
  std::uint32_t blocks = 0;
};

// A step and the state of its group, for --step-log and gauges.
struct StepInfo {
  GroupId group;
  StepId step;
  std::uint32_t decode_rows = 0;
  std::uint32_t prefill_tokens = 0;
  std::uint32_t sequences = 0;  // in the plan's segments
  std::uint32_t waiting = 0;
  std::uint32_t blocks_free = 0;  // of KV group 0
  std::uint32_t blocks_used = 0;
  std::uint32_t blocks_cached = 0;
  std::uint32_t blocks_retiring = 0;
  std::uint32_t window_blocks_free = 0;  // of KV group 1, which has a window
  std::uint32_t window_blocks_used = 0;
  std::uint32_t window_blocks_cached = 0;
  std::uint32_t window_blocks_retiring = 0;
  Duration predicted{0};  // by the cost model; 0 = unknown
  // Decode sub-batches; 0 if attention is not padded.
  std::uint32_t decode_parts = 0;
  std::uint64_t decode_cells = 0;   // padded
  std::uint64_t decode_tokens = 0;  // of these, not padding
  bool resplit = false;             // a new partition was taken
  PrefixUse prefix;                 // since the group's previous step
};

// Reuse it: Clear keeps all memory, also that of the plans, so that a step that starts no
// request does not allocate.
struct Outputs {
  std::vector<PlanOut> plans;
  std::vector<StepInfo> steps;  // one per plan, in the same order
  std::vector<Event> events;
  std::vector<Decision> decisions;
  std::vector<PinChange> pins;

  void Clear() {
    std::move(plans.begin(), plans.end(), std::back_inserter(spare_));
    plans.clear();
    steps.clear();
    events.clear();
    decisions.clear();
    pins.clear();
  }

  // Takes a plan in exchange for an empty one that has memory.
  void AddPlan(GroupId group, StepPlan& plan, std::vector<RequestId>& requests) {
    if (spare_.empty()) spare_.emplace_back();
    PlanOut& out = plans.emplace_back(std::move(spare_.back()));
    spare_.pop_back();
    out.group = group;
    std::swap(out.plan, plan);
    std::swap(out.requests, requests);
    plan.Clear();
    requests.clear();
  }

  template <class T>
  void AddEvent(RequestId request, T what) {
    Event& event = events.emplace_back();
    event.request = request;
    event.what.template emplace<T>(std::move(what));
  }

 private:
  std::vector<PlanOut> spare_;
};

}  // namespace penstock::scheduler
