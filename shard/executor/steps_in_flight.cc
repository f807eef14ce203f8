#include "shard/executor/steps_in_flight.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace penstock::shard {

StepsInFlight::StepsInFlight(DeviceSampler* device, SlotTable& slots, TokenSelector& selector)
    : device_(device), slots_(slots), selector_(selector) {}

// The router ends a slot only after the last result that names it. The check protects the results
// in flight from a router that ends a slot too early.
bool StepsInFlight::Allow(const StepPlan& plan) const {
  for (const Step& step : steps_) {
    for (const Row& row : step.rows) {
      if (std::find(plan.ends.begin(), plan.ends.end(), row.slot) != plan.ends.end()) return false;
    }
  }
  return true;
}

bool StepsInFlight::CanRunAhead(const StepPlan& plan) const {
  return std::all_of(plan.segments.begin(), plan.segments.end(), [this](const Segment& segment) {
    const SequenceStart& start = slots_.at(segment.slot).start;
    const bool prompt = segment.kind == Segment::Kind::kPrompt;
    const bool one_row = prompt ? segment.logits != Segment::Logits::kAll : segment.max_rows == 1;
    // Which word would be completed depends on tokens that the host does not know yet.
    return one_row && start.sampling.Candidates() == 0 && start.grammar.empty() &&
           start.sampling.bad_words.empty();
  });
}

absl::Status StepsInFlight::Begin(const StepBatch& batch, std::function<void()> ready) {
  if (steps_.size() >= kMaxStepsInFlight) {
    return absl::InternalError("too many steps are in flight");
  }
  PENSTOCK_RETURN_IF_ERROR(device_->BeginStep(batch.batch(), batch.newest_samples(),
                                              selector_.device_requests(), std::move(ready)));
  steps_.push_back(Commit(batch, slots_));
  return absl::OkStatus();
}

StepsInFlight::Step StepsInFlight::Commit(const StepBatch& batch, SlotTable& slots) {
  Step step;
  step.begun = SteadyNow();
  for (const StepWork& work : batch.work()) {
    RankSequence& sequence = slots.at(work.segment.slot);
    sequence.committed += work.commits;
    sequence.newest_sample = -1;
    if (work.samples()) {
      ++sequence.tokens_in_flight;
      sequence.newest_sample = static_cast<std::int32_t>(step.tokens++);
    }
    step.rows.push_back(
        {work.segment.slot, sequence.start.sequence, sequence.committed, work.samples()});
  }
  return step;
}

absl::Status StepsInFlight::Collect(StepResult& result) {
  if (steps_.empty()) return absl::InternalError("no step is in flight");
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  tokens_.assign(step.tokens, {});
  PENSTOCK_RETURN_IF_ERROR(device_->EndStep(tokens_));
  std::size_t next = 0;
  for (const Row& row : step.rows) {
    RankSequence& sequence = slots_.at(row.slot);
    const std::size_t token = next;
    if (row.samples) ++next, --sequence.tokens_in_flight;
    if (sequence.finish != ShardFinish::kNone) continue;  // it ended one step earlier
    SequenceResult& one = result.sequences.emplace_back();
    one.slot = row.slot;
    one.sequence = row.sequence;
    one.committed_length = row.committed;
    if (row.samples) PENSTOCK_RETURN_IF_ERROR(selector_.Take(tokens_[token], one));
  }
  // The device begins a step when it has finished the one before.
  const Time now = SteadyNow();
  result.timings.forward = now - std::max(step.begun, last_collected_);
  last_collected_ = now;
  return absl::OkStatus();
}

void StepsInFlight::Drop() {
  for (const Step& step : steps_) {
    tokens_.assign(step.tokens, {});
    device_->EndStep(tokens_).IgnoreError();
  }
  steps_.clear();
}

}  // namespace penstock::shard
