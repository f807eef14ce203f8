#include "shard/executor/model_executor.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/time.h"
#include "shard/executor/adapter_table.h"
#include "shard/executor/drafts.h"

namespace penstock::shard {

ModelExecutor::ModelExecutor(ExecutorOptions options, Backend& backend, Communicator& communicator,
                             Communicator* device_communicator)
    : options_(std::move(options)),
      backend_(backend),
      communicator_(communicator),
      device_communicator_(device_communicator),
      slots_(options_.slots, options_.Tables()),
      grammars_(options_, communicator.rank() == 0),
      sampling_(options_, slots_, grammars_),
      search_(options_, backend, communicator, slots_, sampling_),
      selector_(options_, backend, communicator, slots_, grammars_, sampling_, search_),
      in_flight_(options_.device_sampler, slots_, selector_),
      padded_rows_(backend) {}

void ModelExecutor::Reset() {
  in_flight_.Drop();
  control_applied_ = false;
  for (std::uint32_t slot = 0; slot < options_.slots; ++slot) sampling_.End(SlotId(slot));
  slots_.Reset();
  if (options_.adapters != nullptr) options_.adapters->Reset();
}

absl::StatusOr<StepResult> ModelExecutor::Execute(const StepPlan& plan) {
  StepResult result;
  if (!in_flight_.empty()) return absl::InternalError("Execute was called with steps in flight");
  const absl::Status status = Run(plan, result);
  if (status.ok()) return result;
  Abort();
  return status;
}

absl::Status ModelExecutor::Run(const StepPlan& plan, StepResult& result) {
  if (!std::exchange(control_applied_, false)) PENSTOCK_RETURN_IF_ERROR(ApplyControl(plan));
  PENSTOCK_RETURN_IF_ERROR(padded_rows_.Arrange(plan, slots_, result.cells));
  PENSTOCK_RETURN_IF_ERROR(Draft(plan));
  batch_.Build(plan, slots_, options_.adapters);
  const Time begin = SteadyNow();
  const bool computes = !batch_.batch().segments.empty();
  if (computes) PENSTOCK_RETURN_IF_ERROR(backend_.Execute(batch_.batch()));
  const Time computed = SteadyNow();
  AddSequences(result);
  if (batch_.candidate_segments() > 0) {
    PENSTOCK_RETURN_IF_ERROR(search_.CommitWinners(batch_, result));
  }
  PENSTOCK_RETURN_IF_ERROR(selector_.Run(batch_, result));
  PENSTOCK_RETURN_IF_ERROR(FinishDrafts(result));
  PENSTOCK_RETURN_IF_ERROR(SaveStates(plan));
  result.sequences.insert(result.sequences.end(), refused_.begin(), refused_.end());
  padded_rows_.CountFilled(plan, slots_, result.cells);
  if (computes) {
    result.timings.forward = computed - begin + selector_.logits_time();
    result.timings.sample = SteadyNow() - computed - selector_.logits_time();
  }
  result.memory_bytes = backend_.MemoryBytes();
  return absl::OkStatus();
}

absl::Status ModelExecutor::ApplyControl(const StepPlan& plan) {
  slots_.Apply(plan);
  if (options_.adapters != nullptr) options_.adapters->Apply(plan);
  Refuse(plan);
  for (const SlotId slot : plan.ends) sampling_.End(slot);
  if (!plan.ends.empty()) PENSTOCK_RETURN_IF_ERROR(backend_.EndSequences(plan.ends));
  for (const SequenceStart& start : plan.starts) sampling_.Start(slots_.at(start.slot));
  std::vector<BlockCopy> copies;
  for (const BlockOp& op : plan.block_ops) {
    if (op.kind != BlockOp::Kind::kCopy) continue;
    // One table serves all groups.
    const bool alone = options_.Tables() == 1;
    const std::uint32_t end = alone ? options_.kv_groups : op.kv_group + 1;
    for (std::uint32_t group = alone ? 0 : op.kv_group; group < end; ++group) {
      copies.push_back({op.src, op.dst, group});
    }
  }
  if (!copies.empty()) PENSTOCK_RETURN_IF_ERROR(backend_.CopyBlocks(copies));
  std::vector<StateCopy> restored;
  for (const BlockOp& op : plan.block_ops) {
    if (op.kind == BlockOp::Kind::kRestoreState) restored.push_back({op.slot, op.src});
  }
  return restored.empty() ? absl::OkStatus() : backend_.RestoreStates(restored);
}

// The driver gives no id that is not loaded, but for a group that could not load an adapter again.
void ModelExecutor::Refuse(const StepPlan& plan) {
  refused_.clear();
  for (const SequenceStart& start : plan.starts) {
    if (options_.adapters == nullptr || options_.adapters->Knows(start.adapter_id)) continue;
    slots_.at(start.slot).finish = ShardFinish::kError;
    SequenceResult& one = refused_.emplace_back();
    one.slot = start.slot;
    one.sequence = start.sequence;
    one.committed_length = start.cached_length;
    one.finish = ShardFinish::kError;
    one.error = "adapter " + start.adapter_id + " is not loaded";
  }
}

absl::Status ModelExecutor::SaveStates(const StepPlan& plan) {
  std::vector<StateCopy> saved;
  for (const BlockOp& op : plan.block_ops) {
    if (op.kind == BlockOp::Kind::kSaveState) saved.push_back({op.slot, op.dst});
  }
  return saved.empty() ? absl::OkStatus() : backend_.SaveStates(saved);
}

// Drafts for the decodes that may compute several rows. Contrastive search needs its rows for
// candidates. With a grammar only forced tokens are drafts, because the mask of a row is computed
// while the row before it runs.
absl::Status ModelExecutor::Draft(const StepPlan& plan) {
  for (const Segment& segment : plan.segments) {
    RankSequence& sequence = slots_.at(segment.slot);
    sequence.drafts.clear();
    sequence.forced = false;
    if (segment.kind == Segment::Kind::kPrompt || segment.max_rows < 2) continue;
    if (sequence.start.sampling.Candidates() > 0 || !sequence.start.grammar.empty()) continue;
    FindDrafts(sequence.tokens, sequence.pace.Take(segment.max_rows - 1), sequence.drafts);
  }
  return options_.forced_tokens ? DraftForced(plan) : absl::OkStatus();
}

absl::Status ModelExecutor::DraftForced(const StepPlan& plan) {
  const auto may = [this](const Segment& segment) {
    const RankSequence& sequence = slots_.at(segment.slot);
    return segment.kind == Segment::Kind::kDecode && segment.max_rows > 1 &&
           !sequence.start.grammar.empty() && sequence.start.sampling.Candidates() == 0 &&
           sequence.finish == ShardFinish::kNone && !sequence.selection_pending;
  };
  forced_.clear();
  grammars_.StartDrafts(SteadyNow());
  for (const Segment& segment : plan.segments) {
    if (!may(segment)) continue;
    const std::span<const TokenId> known = grammars_.Forced(segment.slot);
    const std::size_t count = std::min<std::size_t>(known.size(), segment.max_rows - 1);
    forced_.insert(forced_.end(), known.begin(), known.begin() + count);
    forced_.resize(forced_.size() + segment.max_rows - 1 - count, kNotSelected);
  }
  if (forced_.empty()) return absl::OkStatus();
  if (communicator_.world() > 1) {
    PENSTOCK_RETURN_IF_ERROR(
        communicator_.Broadcast(forced_.data(), forced_.size() * sizeof(TokenId), 0));
  }
  auto next = forced_.cbegin();
  for (const Segment& segment : plan.segments) {
    if (!may(segment)) continue;
    const auto end = next + (segment.max_rows - 1);
    RankSequence& sequence = slots_.at(segment.slot);
    sequence.drafts.assign(next, std::find(next, end, kNotSelected));
    next = end;
    if (sequence.drafts.empty()) continue;
    sequence.forced = true;
    grammars_.Advance(segment.slot, sequence.drafts);
  }
  return absl::OkStatus();
}

// Drafts are committed later, as far as they are right.
void ModelExecutor::AddSequences(StepResult& result) {
  for (const StepWork& work : batch_.work()) {
    RankSequence& sequence = slots_.at(work.segment.slot);
    sequence.committed += work.commits;
    SequenceResult& one = result.sequences.emplace_back();
    one.slot = work.segment.slot;
    one.sequence = sequence.start.sequence;
    one.committed_length = sequence.committed;
  }
  for (std::size_t i = 0; i < batch_.work().size(); ++i) {
    if (batch_.work()[i].forced) sampling_.AppendForced(result.sequences[i]);
  }
}

absl::Status ModelExecutor::FinishDrafts(StepResult& result) {
  kept_.clear();
  for (std::size_t i = 0; i < batch_.work().size(); ++i) {
    const StepWork& work = batch_.work()[i];
    SequenceResult& one = result.sequences[i];
    RankSequence& sequence = slots_.at(one.slot);
    const std::uint32_t right = sequence.committed - one.committed_length;
    if (work.drafts > 0) kept_.push_back({work.ragged, right});
    if (!work.forced) {
      sequence.pace.Learn(work.drafts, right);
      result.drafted += work.drafts;
    }
    one.committed_length = sequence.committed;
  }
  return kept_.empty() ? absl::OkStatus() : backend_.KeepDrafts(kept_);
}

void ModelExecutor::Abort() {
  communicator_.Abort();
  if (device_communicator_ != nullptr) device_communicator_->Abort();
}

absl::StatusOr<bool> ModelExecutor::Begin(const StepPlan& plan, std::function<void()> ready) {
  auto begun = TryBegin(plan, std::move(ready));
  if (!begun.ok()) Abort();
  return begun;
}

absl::StatusOr<bool> ModelExecutor::TryBegin(const StepPlan& plan, std::function<void()> ready) {
  if (options_.device_sampler == nullptr) return false;
  if (!in_flight_.Allow(plan)) return false;
  PENSTOCK_RETURN_IF_ERROR(ApplyControl(plan));
  control_applied_ = true;
  if (!in_flight_.CanRunAhead(plan)) return false;
  PENSTOCK_RETURN_IF_ERROR(Draft(plan));
  batch_.Build(plan, slots_, options_.adapters);
  if (batch_.work().empty() || !selector_.FitsDevice(batch_)) return false;
  control_applied_ = false;
  PENSTOCK_RETURN_IF_ERROR(in_flight_.Begin(batch_, std::move(ready)));
  return true;
}

absl::StatusOr<StepResult> ModelExecutor::Collect() {
  StepResult result;
  const absl::Status status = in_flight_.Collect(result);
  if (!status.ok()) {
    Abort();
    return status;
  }
  result.memory_bytes = backend_.MemoryBytes();
  return result;
}

}  // namespace penstock::shard
