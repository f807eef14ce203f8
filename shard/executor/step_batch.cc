#include "shard/executor/step_batch.h"

namespace penstock::shard {

void StepBatch::Build(const StepPlan& plan, const SlotTable& slots) {
  tokens_.clear();
  segments_.clear();
  logit_rows_.clear();
  work_.clear();
  sample_count_ = 0;
  for (const Segment& segment : plan.segments) {
    const Sequence& sequence = slots.at(segment.slot);
    if (sequence.finish == ShardFinish::kNone) Add(segment, sequence);
  }
}

void StepBatch::Add(const Segment& segment, const Sequence& sequence) {
  const bool prompt = segment.kind == Segment::Kind::kPrompt;
  StepWork work;
  work.segment = segment;
  work.rows = prompt ? segment.count : 1;  // without drafts a decode has one row
  const std::uint32_t first = sequence.committed;
  work.samples = first + work.rows >= sequence.start.prompt_length;
  work.first_logit = static_cast<std::uint32_t>(logit_rows_.size());
  if (prompt && segment.logits == Segment::Logits::kAll) {
    work.logit_count = work.rows;
  } else {
    work.logit_count = work.samples ? 1 : 0;
  }

  RaggedSegment ragged;
  ragged.query_start = static_cast<std::uint32_t>(tokens_.size());
  ragged.query_count = work.rows;
  ragged.context_length = first;
  ragged.blocks = sequence.tables.front();
  segments_.push_back(ragged);
  const auto begin = sequence.tokens.begin() + first;
  tokens_.insert(tokens_.end(), begin, begin + work.rows);
  const auto end = static_cast<std::uint32_t>(tokens_.size());
  for (std::uint32_t i = work.logit_count; i > 0; --i) logit_rows_.push_back(end - i);
  if (work.samples) ++sample_count_;
  work_.push_back(work);
}

}  // namespace penstock::shard
