// ModelExecutor's rows of logits that depend on nothing that is found in the same step: one row of
// a sequence that is not searched, drafts nothing and has no grammar, and the rows of a prompt
// whose log-probabilities are asked for. A pass over a row takes as long as a small layer, so the
// threads of the backend share them; what they found is taken over in order.
#include <algorithm>
#include <span>
#include <utility>

#include "shard/executor/model_executor.h"

namespace penstock::shard {

bool ModelExecutor::PicksAlone(const StepWork& work) const {
  const bool one = work.picks == 1 && work.drafts == 0;
  const bool searched = slots_.at(work.segment.slot).start.sampling.Candidates() > 0;
  return one && !searched && !(grammars_ && grammars_->Holds(work.segment.slot));
}

// Its masked tokens stay until the next step.
SampleRequest ModelExecutor::RequestOfRow(std::size_t index) {
  if (masked_rows_.size() <= index) masked_rows_.resize(batch_.work().size());
  SampleRequest request = RequestFor(slots_.at(batch_.work()[index].segment.slot));
  masked_rows_[index].swap(masked_);
  request.masked = masked_rows_[index];
  return request;
}

// `logits`: of the rows [first, first + count) of all those with logits.
void ModelExecutor::PickRows(std::uint32_t first, std::uint32_t count, float* logits) {
  row_picks_.clear();
  const std::size_t vocabulary = options_.vocabulary;
  for (std::size_t index = 0; index < batch_.work().size(); ++index) {
    const StepWork& work = batch_.work()[index];
    const std::uint32_t begin = std::max(work.first_logit, first);
    const std::uint32_t end = std::min(work.first_logit + work.logit_count, first + count);
    for (std::uint32_t row = begin; row < end; ++row) {
      AddRowPick(index, row, {logits + (row - first) * vocabulary, vocabulary});
    }
  }
  const auto picks = static_cast<std::uint32_t>(row_picks_.size());
  backend_.ForEach(picks, [this](std::uint32_t item, std::uint32_t thread) {
    RowPick& pick = row_picks_[item];
    if (pick.request.has_value()) {
      pick.sampled = samplers_[thread].Sample(pick.logits, *pick.request);
    } else {
      pick.sampled->logprob = LogSoftmaxAt(pick.logits, pick.next);
    }
  });
}

void ModelExecutor::AddRowPick(std::size_t index, std::uint32_t row, std::span<float> logits) {
  const StepWork& work = batch_.work()[index];
  const Sequence& sequence = slots_.at(work.segment.slot);
  const std::uint32_t own = row - work.first_logit;
  if (!work.SamplesAt(own)) {
    const std::size_t position = std::size_t{work.segment.first} + own;
    row_picks_.push_back({row, logits, std::nullopt, sequence.tokens[position + 1]});
  } else if (sequence.finish == ShardFinish::kNone && PicksAlone(work)) {
    row_picks_.push_back({row, logits, RequestOfRow(index)});
  }
}

void ModelExecutor::TakeRowPick(const StepWork& work, RowPick& pick, SequenceResult& result) {
  if (pick.request.has_value()) {
    TakeSampled(std::move(pick.sampled), picks_[work.first_pick], result);
  } else {
    result.prompt_logprobs.push_back(pick.sampled->logprob);
  }
}

}  // namespace penstock::shard
