// Fills one step under one token budget, stall-free (Sarathi-Serve, OSDI 2024, algorithm 3): every
// running decode first, then prefill chunks with what is left. A decode row and a prompt token cost
// one token each; the prefill share has its own smaller bound when configured.
//
// Use: AddDecode for all decodes, then AddPrefill in order of priority, then TakeSegments.
// Guarantee G5: the rows of the segments never exceed the budget.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/plan/step_plan.h"
#include "scheduler/config.h"

namespace penstock::scheduler {

struct StepBudget {
  std::uint32_t step_tokens = 0;
  std::uint32_t prefill_tokens = 0;  // share of step_tokens; not above it
};

// The budget of one step on a group that was warmed up for `group_step_tokens`.
StepBudget MakeStepBudget(const Config& config, std::uint32_t group_step_tokens);

// A run of prompt tokens that wants to be computed.
struct PrefillDemand {
  SlotId slot;
  std::uint32_t first = 0;
  std::uint32_t remaining = 0;  // until the prompt's end
  bool prompt_logprobs = false;
};

class StepComposer {
 public:
  StepComposer(StepBudget budget, Prefill mode) : budget_(budget), mode_(mode) {}

  // Up to `rows` rows of one sequence; returns how many fitted.
  std::uint32_t AddDecode(SlotId slot, std::uint32_t rows);

  // As many tokens of the demand as fit (all or nothing with Prefill::kWhole); returns how many.
  std::uint32_t AddPrefill(const PrefillDemand& demand);

  // Prompt tokens that would still fit, by either bound.
  std::uint32_t PrefillLeft() const;
  // True when the step's own budget, not the prefill share, is the tighter bound now.
  bool StepIsTighter() const { return budget_.step_tokens <= budget_.prefill_tokens; }

  bool empty() const { return segments_.empty(); }
  std::uint32_t decode_rows() const { return decode_rows_; }
  std::uint32_t prefill_tokens() const { return prefill_tokens_; }
  std::vector<Segment> TakeSegments() { return std::move(segments_); }

 private:
  StepBudget budget_;  // what is left
  Prefill mode_;
  std::uint32_t decode_rows_ = 0;
  std::uint32_t prefill_tokens_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace penstock::scheduler
