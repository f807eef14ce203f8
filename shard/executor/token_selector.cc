#include "shard/executor/token_selector.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace penstock::shard {

TokenSelector::TokenSelector(const ExecutorOptions& options, Backend& backend,
                             Communicator& communicator, SlotTable& slots, GrammarState& grammars,
                             SamplingState& sampling, ContrastiveSearch& search)
    : options_(options),
      backend_(backend),
      communicator_(communicator),
      slots_(slots),
      grammars_(grammars),
      sampling_(sampling),
      search_(search),
      rows_(backend, slots, sampling, grammars) {}

absl::Status TokenSelector::Run(const StepBatch& batch, StepResult& result) {
  logits_time_ = Duration(0);
  tokens_.assign(batch.token_count(), kNotSelected);
  if (FitsDevice(batch) && !device_requests_.empty()) {
    PENSTOCK_RETURN_IF_ERROR(SelectOnDevice(batch, result));
  } else {
    PENSTOCK_RETURN_IF_ERROR(SelectOnHost(batch, result));
  }
  if (communicator_.rank() == 0) SelectPending(batch, result);
  return Share(batch, result);
}

bool TokenSelector::FitsDevice(const StepBatch& batch) {
  device_requests_.clear();
  if (options_.device_sampler == nullptr) return false;
  device_masked_.resize(std::max(device_masked_.size(), batch.work().size()));
  for (const StepWork& work : batch.work()) {
    if (work.logit_count == 0) continue;
    if (work.logit_count != 1 || !rows_.IsIndependent(work)) return false;
    std::vector<TokenId>& masked = device_masked_[device_requests_.size()];
    device_requests_.push_back(sampling_.RequestFor(slots_.at(work.segment.slot), masked));
  }
  return options_.device_sampler->CanSample(device_requests_);
}

absl::Status TokenSelector::SelectOnDevice(const StepBatch& batch, StepResult& result) {
  const Time begin = SteadyNow();
  const std::span<const SampleRequest> requests = device_requests_;
  device_tokens_.assign(requests.size(), {});
  for (std::size_t first = 0; first < requests.size(); first += options_.max_logit_rows) {
    const std::size_t count =
        std::min<std::size_t>(options_.max_logit_rows, requests.size() - first);
    PENSTOCK_RETURN_IF_ERROR(options_.device_sampler->Sample(
        static_cast<std::uint32_t>(first), requests.subspan(first, count),
        std::span(device_tokens_).subspan(first, count)));
  }
  logits_time_ = SteadyNow() - begin;
  std::size_t next = 0;
  for (std::size_t i = 0; i < batch.work().size(); ++i) {
    const StepWork& work = batch.work()[i];
    if (work.logit_count == 0) continue;
    tokens_[work.first_token] = device_tokens_[next].token;
    PENSTOCK_RETURN_IF_ERROR(Take(device_tokens_[next++], result.sequences[i]));
  }
  return absl::OkStatus();
}

// All ranks gather the logits; only rank 0 looks at them.
absl::Status TokenSelector::SelectOnHost(const StepBatch& batch, StepResult& result) {
  const auto total = static_cast<std::uint32_t>(batch.batch().logit_rows.size());
  for (std::uint32_t first = 0; first < total; first += options_.max_logit_rows) {
    const std::uint32_t count = std::min(options_.max_logit_rows, total - first);
    const Time begin = SteadyNow();
    PENSTOCK_ASSIGN_OR_RETURN(const TensorView view, backend_.Logits(first, count));
    const Time read = SteadyNow();
    logits_time_ += read - begin;
    if (first == 0) grammars_.StartWaiting(read);
    if (communicator_.rank() != 0) continue;
    const std::size_t size = std::size_t{count} * options_.vocabulary;
    SelectRows(batch, first, {static_cast<float*>(view.data), size}, result);
  }
  return absl::OkStatus();
}

void TokenSelector::SelectRows(const StepBatch& batch, std::uint32_t first, std::span<float> logits,
                               StepResult& result) {
  const std::size_t vocabulary = options_.vocabulary;
  const auto count = static_cast<std::uint32_t>(logits.size() / vocabulary);
  const std::span<RowSampler::Row> sampled = rows_.Sample(batch, first, count, logits);
  auto next = sampled.begin();
  for (std::size_t i = 0; i < batch.work().size(); ++i) {
    const StepWork& work = batch.work()[i];
    const std::uint32_t begin = std::max(work.first_logit, first);
    const std::uint32_t end = std::min(work.first_logit + work.logit_count, first + count);
    for (std::uint32_t row = begin; row < end; ++row) {
      if (next != sampled.end() && next->index == row) {
        TakeRow(work, *next++, result.sequences[i]);
      } else {
        SelectRow(work, row, logits.subspan((row - first) * vocabulary, vocabulary),
                  result.sequences[i]);
      }
    }
  }
}

void TokenSelector::TakeRow(const StepWork& work, RowSampler::Row& row, SequenceResult& result) {
  if (row.request.has_value()) {
    TakeSampled(std::move(row.sampled), tokens_[work.first_token], result);
  } else {
    result.prompt_logprobs.push_back(row.report.logprob);
    if (!row.prompt_top_n) return;
    result.prompt_alternatives.push_back(std::move(row.report.alternatives));
  }
}

// A row after a wrong draft is worthless, and so is one after the end of the sequence.
void TokenSelector::SelectRow(const StepWork& work, std::uint32_t row, std::span<float> logits,
                              SequenceResult& result) {
  const std::uint32_t draft = row - work.first_logit + 1 + work.drafts - work.logit_count;
  const RankSequence& sequence = slots_.at(work.segment.slot);
  const bool right = draft == 0 || sequence.committed == result.committed_length + draft;
  if (!right || sequence.finish != ShardFinish::kNone) return;
  if (!grammars_.KeepIfLate(work.segment.slot, logits)) SelectToken(work, draft, logits, result);
}

// `draft`: how many drafts precede the row.
void TokenSelector::SelectToken(const StepWork& work, std::uint32_t draft, std::span<float> logits,
                                SequenceResult& result) {
  const RankSequence& sequence = slots_.at(work.segment.slot);
  if (sequence.start.sampling.Candidates() > 0) {
    return search_.FindCandidates(logits, TokensOf(work), result);
  }
  TokenId& token = tokens_[work.first_token + (work.forced ? 0 : draft)];
  if (const auto forced = grammars_.NextForced(work.segment.slot)) {
    return TakeSampled(SampledToken{.token = *forced, .forced = true}, token, result);
  }
  TakeSampled(sampler_.Sample(logits, sampling_.RequestFor(sequence, masked_)), token, result);
}

// Selects tokens from kept logits, where the mask is ready by now.
void TokenSelector::SelectPending(const StepBatch& batch, StepResult& result) {
  std::vector<SlotId> pending;
  for (const StepWork& work : batch.work()) {
    if (work.pending) pending.push_back(work.segment.slot);
  }
  if (pending.empty()) return;
  if (batch.batch().segments.empty()) grammars_.WaitForAny(pending);
  for (std::size_t i = 0; i < batch.work().size(); ++i) {
    const StepWork& work = batch.work()[i];
    if (!work.pending || !grammars_.IsReady(work.segment.slot)) continue;
    std::vector<float> logits = grammars_.TakeLogits(work.segment.slot);
    SelectToken(work, 0, logits, result.sequences[i]);
  }
}

void TokenSelector::TakeSampled(absl::StatusOr<SampledToken> sampled, TokenId& token,
                                SequenceResult& result) {
  if (!sampled.ok()) {
    token = kSamplingFailed;
    result.error = Message(sampled.status());
    return sampling_.Fail(result);
  }
  token = sampled->token;
  sampling_.Append(*std::move(sampled), result);
}

absl::Status TokenSelector::Share(const StepBatch& batch, StepResult& result) {
  if (tokens_.empty()) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(
      communicator_.Broadcast(tokens_.data(), tokens_.size() * sizeof(TokenId), 0));
  for (std::size_t i = 0; i < batch.work().size(); ++i) {
    const StepWork& work = batch.work()[i];
    if (!work.samples()) continue;
    const std::span<const TokenId> tokens = TokensOf(work);
    RankSequence& sequence = slots_.at(work.segment.slot);
    sequence.selection_pending =
        tokens.front() == kNotSelected && sequence.finish == ShardFinish::kNone;
    if (sequence.selection_pending) {
      if (sequence.start.grammar.empty()) return absl::InternalError("rank 0 selected no token");
      sequence.candidates.clear();
      ++result.late_masks;
    } else if (sequence.start.sampling.Candidates() > 0) {
      PENSTOCK_RETURN_IF_ERROR(search_.TakeCandidates(tokens, result.sequences[i]));
    } else if (communicator_.rank() != 0) {
      PENSTOCK_RETURN_IF_ERROR(TakeShared(tokens, result.sequences[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status TokenSelector::TakeShared(std::span<const TokenId> tokens, SequenceResult& result) {
  for (const TokenId token : tokens) {
    if (token == kNotSelected) break;
    PENSTOCK_RETURN_IF_ERROR(Take({token, 0.0f}, result));
    if (token == kSamplingFailed) break;
  }
  return absl::OkStatus();
}

absl::Status TokenSelector::Take(const DeviceToken& token, SequenceResult& result) {
  if (token.token == kSamplingFailed) {
    sampling_.Fail(result);
    return absl::OkStatus();
  }
  PENSTOCK_RETURN_IF_ERROR(sampling_.CheckToken(token.token));
  sampling_.Append({token.token, token.logprob, {}}, result);
  return absl::OkStatus();
}

}  // namespace penstock::shard
