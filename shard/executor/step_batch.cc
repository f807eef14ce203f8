#include "shard/executor/step_batch.h"

#include <algorithm>

namespace penstock::shard {

void StepBatch::Build(const StepPlan& plan, const SlotTable& slots, const AdapterTable* adapters) {
  tokens_.clear();
  segments_.clear();
  logit_rows_.clear();
  work_.clear();
  newest_samples_.clear();
  token_count_ = 0;
  candidate_segments_ = 0;
  for (const Segment& segment : plan.segments) {
    const RankSequence& sequence = slots.at(segment.slot);
    if (sequence.finish != ShardFinish::kNone) continue;
    Add(segment, sequence);
    if (adapters == nullptr || work_.back().pending) continue;
    segments_.back().adapter = adapters->Of(segment.slot);
  }
}

void StepBatch::AddTokens(const StepWork& work, const RankSequence& sequence) {
  const bool prompt = work.segment.kind == Segment::Kind::kPrompt;
  if (!prompt && sequence.tokens_in_flight > 0) {
    tokens_.push_back(0);
    newest_samples_.push_back(sequence.newest_sample);
    return;
  }
  const std::vector<TokenId>& from = work.candidates ? sequence.candidates : sequence.tokens;
  const auto begin = from.begin() + (work.candidates ? 0 : sequence.committed);
  tokens_.insert(tokens_.end(), begin, begin + (work.rows - work.drafts));
  if (!prompt) tokens_.insert(tokens_.end(), sequence.drafts.begin(), sequence.drafts.end());
  newest_samples_.resize(tokens_.size(), -1);
}

void StepBatch::Add(const Segment& segment, const RankSequence& sequence) {
  const bool prompt = segment.kind == Segment::Kind::kPrompt;
  const std::uint32_t wanted = sequence.start.sampling.Candidates();
  const std::uint32_t first = sequence.committed;
  StepWork work;
  work.segment = segment;
  work.first_token = token_count_;
  if (!prompt && sequence.selection_pending) {
    work.pending = true;
    work.tokens = std::max(1u, wanted);
    token_count_ += work.tokens;
    work_.push_back(work);
    return;
  }
  work.ragged = static_cast<std::uint32_t>(segments_.size());
  work.candidates = !prompt && wanted > 0;
  work.commits = prompt ? segment.count : 1;
  if (!prompt) work.drafts = static_cast<std::uint32_t>(sequence.drafts.size());
  work.rows = work.commits + work.drafts;
  work.forced = work.drafts > 0 && sequence.forced;
  const std::uint32_t selects = work.forced ? 1 : 1 + work.drafts;
  if (work.candidates) work.rows = static_cast<std::uint32_t>(sequence.candidates.size());
  const bool samples = first + work.commits >= sequence.start.prompt_length;
  if (samples) work.tokens = std::max(selects, wanted);
  work.first_logit = static_cast<std::uint32_t>(logit_rows_.size());
  const bool all = prompt && segment.logits == Segment::Logits::kAll;
  work.logit_count = all ? work.rows : (samples ? selects : 0);

  RaggedSegment ragged;
  ragged.query_start = static_cast<std::uint32_t>(tokens_.size());
  ragged.query_count = work.rows;
  ragged.context_length = first;
  ragged.blocks = sequence.tables.front();
  if (sequence.tables.size() > 1) ragged.window_blocks = sequence.tables[1];
  ragged.candidates = work.candidates;
  ragged.state = segment.slot;
  ragged.text_length = sequence.start.prompt_length + (wanted > 0 ? 1 : 0);
  ragged.prompt_length = sequence.OriginalPromptLength();
  ragged.drafts = work.drafts;
  ragged.row = sequence.row;
  segments_.push_back(ragged);
  AddTokens(work, sequence);
  // The first candidate's logit row later becomes that of the sampled token.
  const auto end =
      work.candidates ? ragged.query_start + 1 : static_cast<std::uint32_t>(tokens_.size());
  for (std::uint32_t i = work.logit_count; i > 0; --i) logit_rows_.push_back(end - i);
  token_count_ += work.tokens;
  candidate_segments_ += work.candidates ? 1 : 0;
  work_.push_back(work);
}

}  // namespace penstock::shard
