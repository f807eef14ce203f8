#include "scheduler/step_composer.h"

#include <algorithm>

namespace penstock::scheduler {

StepBudget MakeStepBudget(const Config& config, std::uint32_t group_step_tokens) {
  StepBudget budget;
  budget.step_tokens = std::min(config.max_step_tokens, group_step_tokens);
  budget.prefill_tokens = budget.step_tokens;
  if (config.max_batch_prefill_tokens > 0) {
    budget.prefill_tokens = std::min(budget.prefill_tokens, config.max_batch_prefill_tokens);
  }
  return budget;
}

std::uint32_t StepComposer::AddDecode(SlotId slot, std::uint32_t rows) {
  const std::uint32_t granted = std::min(rows, budget_.step_tokens);
  if (granted == 0) return 0;
  Segment segment;
  segment.kind = Segment::Kind::kDecode;
  segment.slot = slot;
  segment.max_rows = granted;
  segments_.push_back(segment);
  budget_.step_tokens -= granted;
  decode_rows_ += granted;
  return granted;
}

std::uint32_t StepComposer::AddPrefill(const PrefillDemand& demand) {
  const std::uint32_t granted = std::min(demand.remaining, PrefillLeft());
  if (granted == 0 || (mode_ == Prefill::kWhole && granted < demand.remaining)) return 0;
  const bool reaches_end = granted == demand.remaining;
  Segment segment;
  segment.kind = Segment::Kind::kPrompt;
  segment.slot = demand.slot;
  segment.first = demand.first;
  segment.count = granted;
  if (demand.prompt_logprobs) {
    segment.logits = Segment::Logits::kAll;
  } else if (reaches_end) {
    segment.logits = Segment::Logits::kLast;
  }
  segments_.push_back(segment);
  budget_.step_tokens -= granted;
  budget_.prefill_tokens -= granted;
  prefill_tokens_ += granted;
  return granted;
}

std::uint32_t StepComposer::PrefillLeft() const {
  return std::min(budget_.step_tokens, budget_.prefill_tokens);
}

}  // namespace penstock::scheduler
