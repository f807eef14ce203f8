#include "shard/executor/sampling_state.h"

#include <span>
#include <string>
#include <utility>

#include "shard/sampling/processors.h"

namespace penstock::shard {

SamplingState::SamplingState(const ExecutorOptions& options, SlotTable& slots,
                             GrammarState& grammars)
    : options_(options), slots_(slots), grammars_(grammars), histories_(options.slots) {}

void SamplingState::Start(const RankSequence& sequence) {
  grammars_.Start(sequence);
  std::optional<TokenHistory>& history = histories_[sequence.start.slot.value()];
  history.reset();
  if (!NeedsHistory(sequence.start.sampling)) return;
  history.emplace();
  const std::span<const TokenId> tokens = sequence.tokens;
  const std::size_t prompt = sequence.OriginalPromptLength();
  history->AddPrompt(tokens.first(prompt));
  for (TokenId token : tokens.subspan(prompt)) history->AddGenerated(token);
}

void SamplingState::End(SlotId slot) {
  histories_[slot.value()].reset();
  grammars_.End(slot);
}

SampleRequest SamplingState::RequestFor(const RankSequence& sequence,
                                        std::vector<TokenId>& masked) {
  const std::optional<TokenHistory>& history = histories_[sequence.start.slot.value()];
  CollectMasked(sequence, options_.eos_token_ids, masked);
  SampleRequest request{sequence.start.sampling, sequence.start.logprobs,
                        history.has_value() ? &*history : nullptr, masked,
                        sequence.NextOutputIndex()};
  request.watermark = options_.watermark;
  request.before = sequence.tokens.back();
  grammars_.Restrict(sequence, request);
  return request;
}

void SamplingState::Accept(RankSequence& sequence, TokenId token, SequenceResult& result) {
  AcceptToken(sequence, token, options_.eos_token_ids);
  if (auto& history = histories_[result.slot.value()]; history.has_value()) {
    history->AddGenerated(token);
  }
  result.finish = sequence.finish;
}

void SamplingState::AppendForced(SequenceResult& result) {
  RankSequence& sequence = slots_.at(result.slot);
  for (const TokenId token : sequence.drafts) {
    if (sequence.finish != ShardFinish::kNone) return;
    Accept(sequence, token, result);
    if (sequence.finish == ShardFinish::kNone) ++sequence.committed;
    result.tokens.push_back({.token = token, .forced = true});
  }
}

void SamplingState::Append(SampledToken token, SequenceResult& result) {
  RankSequence& sequence = slots_.at(result.slot);
  Accept(sequence, token.token, result);
  if (sequence.finish == ShardFinish::kNone) {
    grammars_.Advance(result.slot, token.token);
    // A token that was drafted right has its K/V already.
    const std::size_t index = result.tokens.size();
    if (index < sequence.drafts.size() && sequence.drafts[index] == token.token) {
      ++sequence.committed;
    }
  }
  result.tokens.push_back(std::move(token));
}

void SamplingState::Fail(SequenceResult& result) {
  slots_.at(result.slot).finish = ShardFinish::kError;
  result.finish = ShardFinish::kError;
  if (result.error.empty()) result.error = "rank 0 could not select a token";
}

absl::Status SamplingState::CheckToken(TokenId token) const {
  if (token >= 0 && static_cast<std::uint32_t>(token) < options_.vocabulary) {
    return absl::OkStatus();
  }
  return absl::InternalError("rank 0 sampled token " + std::to_string(token) +
                             ", which is not in the vocabulary");
}

}  // namespace penstock::shard
