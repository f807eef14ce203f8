// Fills one step under a token budget, without stalling decodes (Sarathi-Serve, OSDI 2024,
// algorithm 3): every running decode first, then prefill chunks with what is left. A decode row and
// a prompt token cost one token each. Prefill may have a smaller budget of its own.
//
// A target time (--target-inter-token-ms) bounds the gap between the tokens of a stream. A step
// with decodes then takes only as many prompt tokens as the cost model predicts to fit into the
// target. A step without decodes delays no stream, so only tokens bound it.
//
// Decodes alone may take nearly the whole target, so that fewer than kMinPrefillTokens fit. Then
// prompts may add 1 / kPrefillShare to the time of the decodes, and always at least
// kMinPrefillTokens tokens. So prompts always progress, and no step is predicted to take longer
// than the target or 1.25 times its decodes, except for the time of those few tokens.
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

// Prompt tokens that a step may always have within its token budget, however long its decodes take.
// Few, because on a CPU each of them takes as long as a decode row.
constexpr std::uint32_t kMinPrefillTokens = 4;

// If those do not fit into the target, prompts may take 1 / kPrefillShare of the decodes' time.
constexpr std::uint32_t kPrefillShare = 4;

// Bound on a step's predicted time.
struct StepTimeLimit {
  const CostModel* cost = nullptr;  // null or not ready: no bound
  Duration target{0};               // 0: no bound
};

// How many prompt tokens fit, and which budget the rest of the prompt would exceed.
struct PrefillFit {
  std::uint32_t count = 0;
  Budget short_of = Budget::kNone;
};

// Prompt tokens of a sequence that are not computed yet.
struct PrefillDemand {
  SlotId slot;
  std::uint32_t first = 0;
  std::uint32_t remaining = 0;  // until the prompt's end
  bool prompt_logprobs = false;
  // May be split with Prefill::kWhole too: a preempted sequence can have more tokens than fit a
  // step.
  bool may_split = false;
  std::uint32_t most = UINT32_MAX;  // of this chunk: a snapshot is saved after it
};

class StepComposer {
 public:
  // The limit's cost model must outlive the composer.
  StepComposer(StepBudget budget, Prefill mode, StepTimeLimit limit = {})
      : budget_(budget), mode_(mode), limit_(limit) {}

  // Adds up to `rows` rows of one sequence, which read `context` positions. Returns how many fit:
  // none, or at least `least`.
  std::uint32_t AddDecode(SlotId slot, std::uint32_t rows, std::uint64_t context,
                          std::uint32_t least = 1);

  // Adds as many tokens as fit, up to `most`. With Prefill::kWhole all of these or none, unless
  // `may_split`.
  PrefillFit AddPrefill(const PrefillDemand& demand);

  // How many of `wanted` prompt tokens, from position `first` on, fit in a chunk now.
  PrefillFit Fit(std::uint32_t first, std::uint32_t wanted) const;

  bool empty() const { return segments_.empty(); }
  std::uint32_t decode_rows() const { return decode_rows_; }
  std::uint32_t prefill_tokens() const { return prefill_tokens_; }
  const StepShape& shape() const { return shape_; }
  const std::vector<Segment>& segments() const { return segments_; }
  // Exchanges the segments for an empty list, whose memory the next step uses.
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

  StepBudget budget_;  // what is left of it
  Prefill mode_;
  StepTimeLimit limit_;
  StepShape shape_;
  std::uint32_t decode_rows_ = 0;
  std::uint32_t prefill_tokens_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace penstock::scheduler
