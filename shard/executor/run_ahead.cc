// ModelExecutor's steps that run ahead of the host: the device takes the tokens of one step into
// the next, so a plan is begun before the result of the one before it is known.
//
// A step runs ahead if the device picks the token of every row that samples (TokenPicker::CanPick)
// and no row needs the host in between: no drafts (--speculate), no grammar, no contrastive search,
// no log-probabilities of a prompt, no truncated or forced tokens, no padded KV layout. Prompt
// chunks do run ahead. Every other step waits for those before it.
//
// What the host learns late: a sequence that ended by a token computes one row more, in its own
// block, and nothing is reported of it.
#include <algorithm>
#include <utility>

#include "common/status.h"
#include "shard/executor/model_executor.h"

namespace penstock::shard {
namespace {

bool RunsAhead(const Segment& segment, const Sequence& sequence) {
  const SequenceStart& start = sequence.start;
  const bool prompt = segment.kind == Segment::Kind::kPrompt;
  const bool one_row = prompt ? segment.logits != Segment::Logits::kAll : segment.max_rows == 1;
  return one_row && start.sampling.Candidates() == 0 && start.grammar.empty();
}

}  // namespace

// The router names a slot as ended only after its last result; were it wrong, a result would have
// nowhere to go.
bool ModelExecutor::NamesStepsAhead(const StepPlan& plan) const {
  for (const AheadStep& step : ahead_) {
    for (const AheadRow& row : step.rows) {
      if (std::find(plan.ends.begin(), plan.ends.end(), row.slot) != plan.ends.end()) return true;
    }
  }
  return false;
}

absl::StatusOr<bool> ModelExecutor::Begin(const StepPlan& plan, std::function<void()> ready) {
  auto begun = TryBegin(plan, std::move(ready));
  if (!begun.ok()) communicator_.Abort();
  return begun;
}

absl::StatusOr<bool> ModelExecutor::TryBegin(const StepPlan& plan, std::function<void()> ready) {
  if (options_.picker == nullptr || options_.padded) return false;
  if (!plan.truncates.empty() || !plan.append_tokens.empty() || NamesStepsAhead(plan)) return false;
  if (ahead_.size() >= kMostStepsAhead) return absl::InternalError("too many steps are begun");
  PENSTOCK_RETURN_IF_ERROR(ApplyControl(plan));
  control_applied_ = true;
  const auto runs_ahead = [this](const Segment& segment) {
    return RunsAhead(segment, slots_.at(segment.slot));
  };
  if (!std::all_of(plan.segments.begin(), plan.segments.end(), runs_ahead)) return false;
  Draft(plan);
  batch_.Build(plan, slots_);
  if (batch_.work().empty() || !CollectPickRequests()) return false;
  control_applied_ = false;
  PENSTOCK_RETURN_IF_ERROR(
      options_.picker->BeginStep(batch_.batch(), batch_.newest(), requests_, std::move(ready)));
  ahead_.push_back(CommitAhead());
  return true;
}

ModelExecutor::AheadStep ModelExecutor::CommitAhead() {
  AheadStep step;
  step.begun = SteadyNow();
  for (const StepWork& work : batch_.work()) {
    Sequence& sequence = slots_.at(work.segment.slot);
    sequence.committed += work.commits;
    sequence.newest_pick = -1;
    if (work.samples()) {
      ++sequence.unknown;
      sequence.newest_pick = static_cast<std::int32_t>(step.picks++);
    }
    step.rows.push_back(
        {work.segment.slot, sequence.start.sequence, sequence.committed, work.samples()});
  }
  return step;
}

absl::StatusOr<StepResult> ModelExecutor::Collect() {
  StepResult result;
  const absl::Status status = CollectInto(result);
  if (status.ok()) return result;
  communicator_.Abort();
  return status;
}

absl::Status ModelExecutor::CollectInto(StepResult& result) {
  if (ahead_.empty()) return absl::InternalError("no step was begun");
  const AheadStep step = std::move(ahead_.front());
  ahead_.pop_front();
  picked_.assign(step.picks, {});
  PENSTOCK_RETURN_IF_ERROR(options_.picker->EndStep(picked_));
  std::size_t next = 0;
  for (const AheadRow& row : step.rows) {
    Sequence& sequence = slots_.at(row.slot);
    const std::size_t pick = next;
    if (row.picks) ++next, --sequence.unknown;
    if (sequence.finish != ShardFinish::kNone) continue;  // it ended one step before
    SequenceResult& one = result.sequences.emplace_back();
    one.slot = row.slot;
    one.sequence = row.sequence;
    one.committed_length = row.committed;
    if (row.picks) PENSTOCK_RETURN_IF_ERROR(TakePicked(picked_[pick], one));
  }
  // The device begins a step when it has come to the end of the one before.
  const Time now = SteadyNow();
  result.timings.forward = now - std::max(step.begun, last_collected_);
  last_collected_ = now;
  result.memory_bytes = backend_.MemoryBytes();
  return absl::OkStatus();
}

// Their results are nobody's any more, whatever came of them.
void ModelExecutor::DropStepsAhead() {
  for (const AheadStep& step : ahead_) {
    picked_.assign(step.picks, {});
    options_.picker->EndStep(picked_).IgnoreError();
  }
  ahead_.clear();
  control_applied_ = false;
}

}  // namespace penstock::shard
