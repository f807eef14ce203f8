// Everything that the core asks for or tells. Collected per apply(); the shell sends plans before
// it delivers events, so that the accelerator never waits for a client.
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

// First plan that computes for the request was made.
struct Started {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;
};

// Committed tokens, gapless from the previous event (G3).
struct Tokens {
  std::uint32_t first_index = 0;  // index of tokens[0] in the request's output
  SampledTokens tokens;
};

// Logprobs of prompt tokens 1 … prompt_length-1, once, before the first Tokens.
struct PromptLogprobs {
  std::vector<float> logprobs;
};

struct Finished {
  FinishReason reason = FinishReason::kLength;
  std::uint32_t generated_tokens = 0;  // final count; a kStopString cuts to its token_count
};

enum class FailureKind : std::uint8_t {
  kQueueFull,   // retry later
  kTooLarge,    // can never fit; the text has the numbers
  kDraining,    // going away
  kGroupLost,   // the shards died under it
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
  std::uint64_t looked_up_tokens = 0;  // of those admitted, restarts too
  std::uint64_t hit_tokens = 0;        // thereof found
  std::uint64_t evicted_blocks = 0;
};

// What became of a prefix that a client asked to keep.
struct PinChange {
  enum class Kind : std::uint8_t { kKept, kUsed, kDropped };
  GroupId group;
  Kind kind = Kind::kKept;
  RequestId made_by;  // names the prefix
  RequestId by;       // kUsed: who used it
  std::uint32_t tokens = 0;
  std::uint32_t blocks = 0;
};

// State after a plan or result, for --step-log and the gauges.
struct StepInfo {
  GroupId group;
  StepId step;
  std::uint32_t decode_rows = 0;
  std::uint32_t prefill_tokens = 0;
  std::uint32_t sequences = 0;  // named in the plan's segments
  std::uint32_t waiting = 0;
  std::uint32_t blocks_free = 0;
  std::uint32_t blocks_used = 0;
  std::uint32_t blocks_cached = 0;
  std::uint32_t blocks_retiring = 0;
  Duration predicted{0};  // by the cost model; 0 = it does not know
  // Of decodes that are split by length; 0 where attention is ragged.
  std::uint32_t decode_parts = 0;
  std::uint64_t decode_cells = 0;   // padded
  std::uint64_t decode_tokens = 0;  // thereof not padding
  bool resplit = false;             // another partition than before was taken
  PrefixUse prefix;                 // since the group's step before
};

// Meant to be used again and again: Clear keeps the memory of everything, of the plans' lists too,
// so that steps which start nothing allocate nothing.
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

  // Gives a plan out in exchange for an empty one with room.
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
