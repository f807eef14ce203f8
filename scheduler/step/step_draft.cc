#include "scheduler/step/step_draft.h"

#include <algorithm>
#include <utility>

namespace penstock::scheduler {

void StepDraft::Begin(StepBudget budget, StepTimeLimit limit) {
  composer_.Restart(budget, limit);
  plan_.Clear();
  requests_.clear();
  references_.clear();
  admitted_ = false;
}

void StepDraft::Start(Sequence& sequence, Outputs& out) {
  const Arrival& request = sequence.request;
  const std::uint32_t resumed = sequence.resumed;
  sequence.started = true;
  SequenceStart start;
  start.slot = sequence.slot;
  start.sequence = sequence.id;
  start.prompt = request.prompt;
  start.prompt.insert(start.prompt.end(), sequence.generated.begin(), sequence.generated.end());
  start.prompt_length = sequence.PromptLength();
  start.cached_length = sequence.cached_length;
  start.sample_index_base = resumed;
  start.sampling = request.sampling;
  start.logprobs = request.logprobs;
  start.logprobs.prompt_logprobs = sequence.WantsPromptLogprobs();
  start.stop_token_ids = request.stop_token_ids;
  start.ignore_eos = request.ignore_eos;
  start.min_new_tokens = request.min_new_tokens - std::min(request.min_new_tokens, resumed);
  start.max_new_tokens = request.max_new_tokens - resumed;
  start.grammar = request.grammar;
  start.adapter_id = request.adapter_id;
  start.trace_id = request.trace_id;
  plan_.starts.push_back(std::move(start));
  requests_.push_back(request.request);
  if (std::exchange(sequence.started_sent, true)) return;
  out.AddEvent(request.request,
               Started{static_cast<std::uint32_t>(request.prompt.size()), sequence.cached_length});
}

void StepDraft::CopyTail(Sequence& sequence, BlockCache& cache) {
  if (!sequence.tail_to_copy) return;
  BlockOp op;
  op.kind = BlockOp::Kind::kCopy;
  op.slot = sequence.slot;
  op.src = *std::exchange(sequence.tail_to_copy, std::nullopt);
  op.dst = sequence.blocks.blocks()[sequence.cached_length / cache.block_size()];
  plan_.block_ops.push_back(op);
  if (cache.window_tokens() > 0) {
    op.kv_group = WindowTable::kGroup;
    op.src = cache.window().BlockOf(op.src);
    op.dst = sequence.window.blocks()[sequence.cached_length / cache.block_size()];
    plan_.block_ops.push_back(op);
  }
  cache.FinishTail();
}

void StepDraft::RestoreState(Sequence& sequence, BlockCache& cache) {
  if (!sequence.snapshot) return;
  BlockOp op;
  op.kind = BlockOp::Kind::kRestoreState;
  op.slot = sequence.slot;
  op.src = *sequence.snapshot;
  plan_.block_ops.push_back(op);
  cache.ReleaseSnapshot(sequence.snapshot);
}

void StepDraft::SaveState(const Sequence& sequence, BlockId node, BlockCache& cache) {
  const std::optional<BlockId> snapshot = cache.AddSnapshot(node, step_, sequence.id);
  if (!snapshot) return;
  BlockOp op;
  op.kind = BlockOp::Kind::kSaveState;
  op.slot = sequence.slot;
  op.dst = *snapshot;
  plan_.block_ops.push_back(op);
}

void StepDraft::Finish(GroupId group, Epoch epoch, Outputs& out) {
  plan_.epoch = epoch;
  plan_.step = step_;
  out.AddPlan(group, plan_, requests_);
  step_ = StepId(step_.value() + 1);
}

}  // namespace penstock::scheduler
