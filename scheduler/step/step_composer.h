// Fills one step under one token budget, stall-free (Sarathi-Serve, OSDI 2024, algorithm 3): every
// running decode first, then prefill chunks with what is left. A decode row and a prompt token cost
// one token each; the prefill share has its own smaller bound when configured.
//
// With a target time (--target-inter-token-ms) a step that holds decodes takes only as many prompt
// tokens as the cost model says it can compute within it: the streams see no longer gap. A step in
// which nobody decodes keeps nobody waiting and is bounded by tokens alone. When the decodes
// (nearly) take the target by themselves, so that fewer than kLeastPrefillTokens fit, prompts may
// add 1 / kPrefillShare to what the decodes take, and at least those few tokens, so that they
// always move: no step is predicted to be longer than the target and than 1.25 times its decodes,
// but for what so few tokens take.
//
// Use: AddDecode for all decodes, then AddPrefill in order of priority, then TakeSegments.
// Guarantee G5: the rows of the segments never exceed the budget.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/plan/step_plan.h"
#include "common/time.h"
#include "scheduler/config.h"
#include "scheduler/cost/cost_model.h"
#include "scheduler/output.h"
#include "scheduler/step/step_shape.h"

namespace penstock::scheduler {

struct StepBudget {
  std::uint32_t step_tokens = 0;
  std::uint32_t prefill_tokens = 0;  // share of step_tokens; not above it
};

// The budget of one step on a group that was warmed up for `group_step_tokens`.
StepBudget MakeStepBudget(const Config& config, std::uint32_t group_step_tokens);

// Prompt tokens of a step however long its decodes take (as far as its token budget goes). Few,
// since where arithmetic bounds a step, as on a CPU, each of them takes as long as a decode row.
constexpr std::uint32_t kLeastPrefillTokens = 4;

// Where not even those fit into the target: prompts may take this part of the decodes' own time.
constexpr std::uint32_t kPrefillShare = 4;

// Bound on a step's predicted time.
struct StepTimeLimit {
  const CostModel* cost = nullptr;  // null or not ready: no bound
  Duration target{0};               // 0: no bound
};

// How much of a run of prompt tokens fits, and what keeps the rest out.
struct PrefillFit {
  std::uint32_t count = 0;
  Budget short_of = Budget::kNone;
};

// A run of prompt tokens that wants to be computed.
struct PrefillDemand {
  SlotId slot;
  std::uint32_t first = 0;
  std::uint32_t remaining = 0;  // until the prompt's end
  bool prompt_logprobs = false;
  bool may_split = false;  // with Prefill::kWhole too: longer than a step, as only a restart can be
};

class StepComposer {
 public:
  // The limit's cost model must outlive the composer.
  StepComposer(StepBudget budget, Prefill mode, StepTimeLimit limit = {})
      : budget_(budget), mode_(mode), limit_(limit) {}

  // Up to `rows` rows of one sequence, which read `context` positions; returns how many fitted:
  // none, or at least `least`.
  std::uint32_t AddDecode(SlotId slot, std::uint32_t rows, std::uint64_t context,
                          std::uint32_t least = 1);

  // As many tokens of the demand as fit (all or nothing with Prefill::kWhole).
  PrefillFit AddPrefill(const PrefillDemand& demand);

  // Of `wanted` prompt tokens from position `first` on, what a chunk could hold now.
  PrefillFit Fit(std::uint32_t first, std::uint32_t wanted) const;

  bool empty() const { return segments_.empty(); }
  std::uint32_t decode_rows() const { return decode_rows_; }
  std::uint32_t prefill_tokens() const { return prefill_tokens_; }
  const StepShape& shape() const { return shape_; }
  const std::vector<Segment>& segments() const { return segments_; }
  // In exchange for an empty list, whose room the next step uses.
  void TakeSegments(std::vector<Segment>& segments) { segments_.swap(segments); }

  // Begins another step.
  void Restart(StepBudget budget, StepTimeLimit limit) {
    budget_ = budget;
    limit_ = limit;
    decode_rows_ = 0;
    prefill_tokens_ = 0;
    shape_ = {};
    segments_.clear();
  }

 private:
  bool TimeBinds() const;
  Duration TimeAllowed() const;

  StepBudget budget_;  // what is left
  Prefill mode_;
  StepTimeLimit limit_;
  StepShape shape_;
  std::uint32_t decode_rows_ = 0;
  std::uint32_t prefill_tokens_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace penstock::scheduler
