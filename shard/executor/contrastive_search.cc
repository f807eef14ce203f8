#include "shard/executor/contrastive_search.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "common/status.h"

namespace penstock::shard {
namespace {

constexpr std::int32_t kNoWinner = -1;  // the hidden states hold a NaN

// Index of the largest (1 - alpha) * probability - alpha * similarity, the first of equal ones.
std::int32_t ChooseCandidate(float alpha, std::span<const float> probabilities,
                             std::span<const float> similarities) {
  std::int32_t winner = kNoWinner;
  float best = 0;
  for (std::size_t i = 0; i < similarities.size(); ++i) {
    const float score = (1.0f - alpha) * probabilities[i] - alpha * similarities[i];
    if (std::isnan(score)) return kNoWinner;
    if (winner != kNoWinner && score <= best) continue;
    winner = static_cast<std::int32_t>(i);
    best = score;
  }
  return winner;
}

}  // namespace

ContrastiveSearch::ContrastiveSearch(const ExecutorOptions& options, Backend& backend,
                                     Communicator& communicator, SlotTable& slots,
                                     SamplingState& sampling)
    : backend_(backend),
      communicator_(communicator),
      slots_(slots),
      sampling_(sampling),
      candidates_(options.slots) {}

absl::Status ContrastiveSearch::CommitWinners(const StepBatch& batch, StepResult& result) {
  winners_.assign(batch.candidate_segments(), kNoWinner);
  if (communicator_.rank() == 0) PENSTOCK_RETURN_IF_ERROR(ChooseWinners(batch));
  PENSTOCK_RETURN_IF_ERROR(
      communicator_.Broadcast(winners_.data(), winners_.size() * sizeof(winners_.front()), 0));
  choices_.clear();
  for (std::uint32_t i = 0; i < batch.work().size(); ++i) {
    const StepWork& work = batch.work()[i];
    if (!work.candidates) continue;
    const std::int32_t winner = winners_[choices_.size()];
    if (winner >= static_cast<std::int32_t>(work.rows)) {
      return absl::InternalError("rank 0 chose candidate " + std::to_string(winner) + " of " +
                                 std::to_string(work.rows));
    }
    AppendWinner(winner, result.sequences[i]);
    // The backend needs a choice for a failed sequence too, although it is never read again.
    choices_.push_back({work.ragged, static_cast<std::uint32_t>(std::max(winner, 0))});
  }
  return backend_.CommitCandidates(choices_);
}

absl::Status ContrastiveSearch::ChooseWinners(const StepBatch& batch) {
  std::size_t next = 0;
  for (const StepWork& work : batch.work()) {
    if (!work.candidates) continue;
    const SlotId slot = work.segment.slot;
    similarities_.resize(work.rows);
    PENSTOCK_RETURN_IF_ERROR(backend_.Similarities(work.ragged, similarities_));
    winners_[next++] = ChooseCandidate(slots_.at(slot).start.sampling.penalty_alpha,
                                       candidates_[slot.value()].probabilities, similarities_);
  }
  return absl::OkStatus();
}

void ContrastiveSearch::AppendWinner(std::int32_t winner, SequenceResult& result) {
  if (winner < 0) {
    result.error = "the model gave NaN hidden states";
    return sampling_.Fail(result);
  }
  const auto index = static_cast<std::size_t>(winner);
  CandidateSet& set = candidates_[result.slot.value()];
  if (communicator_.rank() == 0) {
    sampling_.Append(std::move(set.tokens[index]), result);
  } else {
    sampling_.Append({slots_.at(result.slot).candidates[index], 0.0f, {}}, result);
  }
}

void ContrastiveSearch::FindCandidates(std::span<float> logits, std::span<TokenId> tokens,
                                       SequenceResult& result) {
  CandidateSet& set = candidates_[result.slot.value()];
  set = {};
  const SampleRequest request = sampling_.RequestFor(slots_.at(result.slot), masked_);
  const absl::Status found = sampler_.FindCandidates(logits, request, set);
  if (!found.ok()) {
    tokens.front() = kSamplingFailed;
    result.error = Message(found);
  }
  for (std::size_t i = 0; i < set.tokens.size(); ++i) tokens[i] = set.tokens[i].token;
}

absl::Status ContrastiveSearch::TakeCandidates(std::span<const TokenId> tokens,
                                               SequenceResult& result) {
  RankSequence& sequence = slots_.at(result.slot);
  sequence.candidates.clear();
  if (sequence.finish != ShardFinish::kNone) return absl::OkStatus();
  if (tokens.front() == kSamplingFailed) {
    sampling_.Fail(result);
    return absl::OkStatus();
  }
  for (const TokenId token : tokens) {
    if (token == kNotSelected) break;
    PENSTOCK_RETURN_IF_ERROR(sampling_.CheckToken(token));
    sequence.candidates.push_back(token);
  }
  return sequence.candidates.empty() ? absl::InternalError("rank 0 found no candidates")
                                     : absl::OkStatus();
}

}  // namespace penstock::shard
