// The part of ModelExecutor that runs contrastive search. A decode computes one row per candidate;
// the winner's K/V and hidden state are committed, and its logits give the next candidates: one
// forward pass per token. What a sequence needs from step to step (its candidates) follows from its
// tokens, so a restart finds the same.
#include <algorithm>
#include <utility>

#include "common/status.h"
#include "shard/executor/model_executor.h"

namespace penstock::shard {

absl::Status ModelExecutor::CommitWinners(StepResult& result) {
  winners_.assign(batch_.candidate_segments(), kFailedPick);
  if (communicator_.rank() == 0) PENSTOCK_RETURN_IF_ERROR(ChooseWinners());
  PENSTOCK_RETURN_IF_ERROR(
      communicator_.Broadcast(winners_.data(), winners_.size() * sizeof(winners_.front()), 0));
  choices_.clear();
  for (std::uint32_t i = 0; i < batch_.work().size(); ++i) {
    const StepWork& work = batch_.work()[i];
    if (!work.candidates) continue;
    const std::int32_t winner = winners_[choices_.size()];
    if (winner >= static_cast<std::int32_t>(work.rows)) {
      return absl::InternalError("rank 0 chose candidate " + std::to_string(winner) + " of " +
                                 std::to_string(work.rows));
    }
    TakeWinner(winner, result.sequences[i]);
    // A failed sequence is never read again; something must be committed for it all the same.
    choices_.push_back({work.ragged, static_cast<std::uint32_t>(std::max(winner, 0))});
  }
  return backend_.CommitCandidates(choices_);
}

absl::Status ModelExecutor::ChooseWinners() {
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < batch_.work().size(); ++i) {
    const StepWork& work = batch_.work()[i];
    if (!work.candidates) continue;
    const SlotId slot = work.segment.slot;
    similarities_.resize(work.rows);
    PENSTOCK_RETURN_IF_ERROR(backend_.Similarities(work.ragged, similarities_));
    const auto winner = ChooseCandidate(slots_.at(slot).start.sampling.penalty_alpha,
                                        candidates_[slot.value()].probabilities, similarities_);
    winners_[next++] = winner.has_value() ? static_cast<std::int32_t>(*winner) : kFailedPick;
  }
  return absl::OkStatus();
}

void ModelExecutor::TakeWinner(std::int32_t winner, SequenceResult& result) {
  if (winner < 0) {
    result.error = "the model gave NaN hidden states";
    return Fail(result);
  }
  const auto index = static_cast<std::size_t>(winner);
  const TokenId token = slots_.at(result.slot).candidates[index];
  Accept(token, result);
  CandidateSet& set = candidates_[result.slot.value()];
  if (set.tokens.empty()) {  // another rank than 0
    result.tokens.push_back({token, 0.0f, {}});
  } else {
    result.tokens.push_back(std::move(set.tokens[index]));
  }
}

void ModelExecutor::FindCandidates(const StepWork& work, std::span<float> logits,
                                   SequenceResult& result) {
  const Sequence& sequence = slots_.at(work.segment.slot);
  CandidateSet& set = candidates_[work.segment.slot.value()];
  set.Clear();
  if (sequence.finish != ShardFinish::kNone || PutOff(work, logits)) return;
  const auto picks = std::span(picks_).subspan(work.first_pick, work.picks);
  const absl::Status found = samplers_.front().FindCandidates(logits, RequestFor(sequence), set);
  if (!found.ok()) {
    picks.front() = kFailedPick;
    result.error = Message(found);
  }
  for (std::size_t i = 0; i < set.tokens.size(); ++i) picks[i] = set.tokens[i].token;
}

absl::Status ModelExecutor::TakeCandidates(std::span<const TokenId> picks, SequenceResult& result) {
  Sequence& sequence = slots_.at(result.slot);
  sequence.candidates.clear();
  if (sequence.finish != ShardFinish::kNone) return absl::OkStatus();
  if (picks.front() == kFailedPick) {
    Fail(result);
    return absl::OkStatus();
  }
  for (const TokenId pick : picks) {
    if (pick == kNoPick) break;
    PENSTOCK_RETURN_IF_ERROR(CheckPick(pick));
    sequence.candidates.push_back(pick);
  }
  return sequence.candidates.empty() ? absl::InternalError("rank 0 found no candidates")
                                     : absl::OkStatus();
}

}  // namespace penstock::shard
