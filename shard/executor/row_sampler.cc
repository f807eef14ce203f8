#include "shard/executor/row_sampler.h"

#include <algorithm>

namespace penstock::shard {

RowSampler::RowSampler(Backend& backend, const SlotTable& slots, SamplingState& sampling,
                       const GrammarState& grammars)
    : backend_(backend),
      slots_(slots),
      sampling_(sampling),
      grammars_(grammars),
      samplers_(backend.OwnThreads()) {}

bool RowSampler::IsIndependent(const StepWork& work) const {
  const bool one = work.tokens == 1 && work.drafts == 0;
  const bool searches = slots_.at(work.segment.slot).start.sampling.Candidates() > 0;
  return one && !searches && !grammars_.HasGrammar(work.segment.slot);
}

std::span<RowSampler::Row> RowSampler::Sample(const StepBatch& batch, std::uint32_t first,
                                              std::uint32_t count, std::span<float> logits) {
  rows_.clear();
  if (masked_.size() < count) masked_.resize(count);
  const std::size_t vocabulary = logits.size() / count;
  for (const StepWork& work : batch.work()) {
    const std::uint32_t begin = std::max(work.first_logit, first);
    const std::uint32_t end = std::min(work.first_logit + work.logit_count, first + count);
    for (std::uint32_t row = begin; row < end; ++row) {
      Add(work, row, logits.subspan((row - first) * vocabulary, vocabulary));
    }
  }
  const auto rows = static_cast<std::uint32_t>(rows_.size());
  backend_.ForEach(rows, [this](std::uint32_t item, std::uint32_t thread) {
    Row& row = rows_[item];
    if (row.request.has_value()) {
      row.sampled = samplers_[thread].Sample(row.logits, *row.request);
    } else {
      row.report = samplers_[thread].ReportPrompt(row.logits, row.next, row.prompt_top_n);
    }
  });
  return rows_;
}

void RowSampler::Add(const StepWork& work, std::uint32_t index, std::span<float> logits) {
  const RankSequence& sequence = slots_.at(work.segment.slot);
  const std::uint32_t row = index - work.first_logit;
  if (!work.SamplesAt(row)) {
    const std::size_t position = std::size_t{work.segment.first} + row;
    rows_.push_back({index, logits, std::nullopt, sequence.tokens[position + 1],
                     sequence.start.logprobs.prompt_top_n});
  } else if (sequence.finish == ShardFinish::kNone && IsIndependent(work)) {
    std::vector<TokenId>& masked = masked_[rows_.size()];
    rows_.push_back({index, logits, sampling_.RequestFor(sequence, masked)});
  }
}

}  // namespace penstock::shard
