#include "scheduler/step/step_composer.h"

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

std::uint32_t StepComposer::AddDecode(SlotId slot, std::uint32_t rows, std::uint64_t context,
                                      std::uint32_t least) {
  const std::uint32_t granted = std::min(rows, budget_.step_tokens);
  if (granted < least) return 0;
  Segment segment;
  segment.kind = Segment::Kind::kDecode;
  segment.slot = slot;
  segment.max_rows = granted;
  segments_.push_back(segment);
  budget_.step_tokens -= granted;
  decode_rows_ += granted;
  shape_.AddDecode(context, granted);
  return granted;
}

PrefillFit StepComposer::AddPrefill(const PrefillDemand& demand) {
  const std::uint32_t wanted = std::min(demand.remaining, demand.most);
  const PrefillFit fit = Fit(demand.first, wanted);
  const std::uint32_t granted = fit.count;
  const bool too_little = mode_ == Prefill::kWhole && !demand.may_split && granted < wanted;
  if (granted == 0 || too_little) return {0, fit.short_of};
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
  shape_.AddChunk(demand.first, granted);
  return fit;
}

bool StepComposer::TimeBinds() const {
  return limit_.target > Duration(0) && limit_.cost != nullptr && limit_.cost->ready() &&
         mode_ == Prefill::kChunked && decode_rows_ > 0;
}

Duration StepComposer::TimeAllowed() const {
  StepShape decodes;
  decodes.decode_rows = shape_.decode_rows;
  decodes.decode_context = shape_.decode_context;
  StepShape few = decodes;
  few.AddChunk(0, kMinPrefillTokens);
  if (limit_.cost->Predict(few) <= limit_.target) return limit_.target;
  const Duration alone = limit_.cost->Predict(decodes);
  return std::max(limit_.target, alone + alone / kPrefillShare);
}

PrefillFit StepComposer::Fit(std::uint32_t first, std::uint32_t wanted) const {
  PrefillFit fit{std::min({wanted, budget_.step_tokens, budget_.prefill_tokens}), Budget::kNone};
  if (fit.count < wanted) {
    const bool step_is_tighter = budget_.step_tokens <= budget_.prefill_tokens;
    fit.short_of = step_is_tighter ? Budget::kStepTokens : Budget::kPrefillTokens;
  }
  if (!TimeBinds()) return fit;
  const std::uint32_t least = kMinPrefillTokens - std::min(kMinPrefillTokens, prefill_tokens_);
  const std::uint32_t in_time = limit_.cost->LargestChunk(shape_, first, fit.count, TimeAllowed());
  const std::uint32_t bound = std::max(in_time, std::min(least, fit.count));
  return bound < fit.count ? PrefillFit{bound, Budget::kStepTime} : fit;
}

}  // namespace penstock::scheduler
