#include "shard/tgi/batch_runner.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace penstock::shard {

BatchRunner::BatchRunner(RunPlan run, std::uint32_t max_step_tokens, SequencePool& pool)
    : run_(std::move(run)), max_step_tokens_(max_step_tokens), pool_(pool) {}

absl::Status BatchRunner::Run(const Members& members) {
  engine_time_ = Duration(0);
  plan_.Clear();
  plan_.ends = pool_.TakeEnds();
  StartNew(members);
  for (const auto& member : members) {
    if (member->stopped) continue;
    member->sampled.reset();
    PENSTOCK_RETURN_IF_ERROR(Add(*member));
  }
  return Flush();
}

void BatchRunner::StartNew(const Members& members) {
  for (const auto& member : members) {
    if (member->started || member->stopped) continue;
    member->started = true;
    SequenceStart& start = member->request.start;
    start.slot = member->allocation.slot;
    start.sequence = member->sequence;
    if (member->restarts) plan_.ends.push_back(start.slot);
    plan_.starts.push_back(start);
    if (!start.logprobs.prompt_logprobs) start.prompt = {};
    for (BlockId block : member->allocation.blocks) {
      BlockOp op;
      op.slot = start.slot;
      op.dst = block;
      plan_.block_ops.push_back(op);
    }
  }
}

absl::Status BatchRunner::Add(Member& member) {
  const std::uint32_t prompt = member.request.start.prompt_length;
  for (std::uint32_t rest = member.next; rest > 0;) {
    if (rows_ == max_step_tokens_) PENSTOCK_RETURN_IF_ERROR(Flush());
    Segment segment;
    segment.slot = member.allocation.slot;
    if (member.prefilling()) {
      segment.kind = Segment::Kind::kPrompt;
      segment.first = member.computed;
      segment.count = std::min(rest, max_step_tokens_ - rows_);
      const bool last = segment.first + segment.count == prompt;
      if (last) segment.logits = Segment::Logits::kLast;
      if (member.request.start.logprobs.prompt_logprobs) segment.logits = Segment::Logits::kAll;
      member.computed += segment.count;
    }
    rest -= std::min(rest, segment.Rows());
    rows_ += segment.Rows();
    plan_.segments.push_back(segment);
    segment_members_.push_back(&member);
  }
  return absl::OkStatus();
}

absl::Status BatchRunner::Flush() {
  if (plan_.segments.empty()) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(StepResult result, run_(plan_));
  engine_time_ += result.timings.forward + result.timings.sample;
  // One result for each segment, because no segment names an ended sequence.
  if (result.sequences.size() != segment_members_.size()) {
    return absl::InternalError("the engine answered " + std::to_string(result.sequences.size()) +
                               " of " + std::to_string(segment_members_.size()) + " sequences");
  }
  for (std::size_t i = 0; i < segment_members_.size(); ++i)
    TakeResult(result.sequences[i], *segment_members_[i]);
  plan_.Clear();
  segment_members_.clear();
  rows_ = 0;
  return absl::OkStatus();
}

void BatchRunner::TakeResult(SequenceResult& result, Member& member) {
  auto& logprobs = member.prompt_logprobs;
  logprobs.insert(logprobs.end(), result.prompt_logprobs.begin(), result.prompt_logprobs.end());
  member.finish = result.finish;
  member.error = std::move(result.error);
  if (!result.tokens.empty()) member.sampled = std::move(result.tokens.front());
}

}  // namespace penstock::shard
