#include "shard/executor/model_executor.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/status.h"
#include "common/time.h"
#include "shard/sampling/grammar_error.h"
#include "shard/sampling/processors.h"

namespace penstock::shard {
namespace {

// What earlier starts of the request have generated counts as generated.
std::size_t OriginalPromptLength(const SequenceStart& start) {
  const std::uint32_t length = start.prompt_length;
  return length - std::min(start.sample_index_base, length);
}

}  // namespace

ModelExecutor::ModelExecutor(ExecutorOptions options, Backend& backend, Communicator& communicator)
    : options_(std::move(options)),
      backend_(backend),
      communicator_(communicator),
      slots_(options_.slots, 1),
      histories_(options_.slots),
      kept_(options_.slots),
      candidates_(options_.slots),
      samplers_(backend.OwnThreads()) {
  if (options_.grammars != nullptr && communicator_.rank() == 0) {
    grammars_.emplace(options_.slots, *options_.grammars);
  }
}

void ModelExecutor::Reset() {
  DropStepsAhead();
  for (std::uint32_t slot = 0; slot < options_.slots; ++slot) EndGrammar(SlotId(slot));
  slots_.Reset();
  std::fill(histories_.begin(), histories_.end(), std::nullopt);
}

absl::StatusOr<StepResult> ModelExecutor::Execute(const StepPlan& plan) {
  StepResult result;
  if (!ahead_.empty()) return absl::InternalError("a step is executed before those begun are over");
  const absl::Status status = Run(plan, result);
  if (status.ok()) return result;
  communicator_.Abort();
  return status;
}

absl::Status ModelExecutor::Run(const StepPlan& plan, StepResult& result) {
  if (!std::exchange(control_applied_, false)) PENSTOCK_RETURN_IF_ERROR(ApplyControl(plan));
  if (options_.padded) {
    PENSTOCK_RETURN_IF_ERROR(cell_rows_.Arrange(plan, slots_, backend_, result.cells));
  }
  Draft(plan);
  batch_.Build(plan, slots_);
  logits_time_ = Duration(0);
  const Time begin = SteadyNow();
  const bool computes = !batch_.batch().segments.empty();
  if (computes) PENSTOCK_RETURN_IF_ERROR(backend_.Execute(batch_.batch()));
  const Time computed = SteadyNow();
  for (const StepWork& work : batch_.work()) {
    Sequence& sequence = slots_.at(work.segment.slot);
    sequence.committed += work.commits;
    SequenceResult& one = result.sequences.emplace_back();
    one.slot = work.segment.slot;
    one.sequence = sequence.start.sequence;
    one.committed_length = sequence.committed;
  }
  if (batch_.candidate_segments() > 0) PENSTOCK_RETURN_IF_ERROR(CommitWinners(result));
  PENSTOCK_RETURN_IF_ERROR(ReadLogits(result));
  PENSTOCK_RETURN_IF_ERROR(SharePicks(result));
  FinishDrafts(result);
  if (options_.padded) cell_rows_.CountFilled(plan, slots_, result.cells);
  if (computes) {
    result.timings.forward = computed - begin + logits_time_;
    result.timings.sample = SteadyNow() - computed - logits_time_;
  }
  result.memory_bytes = backend_.MemoryBytes();
  return absl::OkStatus();
}

absl::Status ModelExecutor::ApplyControl(const StepPlan& plan) {
  slots_.Apply(plan);
  for (SlotId slot : plan.ends) {
    histories_[slot.value()].reset();
    EndGrammar(slot);
  }
  for (const SequenceStart& start : plan.starts) StartHistory(start);
  for (const Truncate& truncate : plan.truncates) RebuildHistory(truncate.slot);
  std::vector<BlockCopy> copies;
  for (const BlockOp& op : plan.block_ops) {
    if (op.kind == BlockOp::Kind::kCopy) copies.push_back({op.src, op.dst});
  }
  return copies.empty() ? absl::OkStatus() : backend_.CopyBlocks(copies);
}

void ModelExecutor::StartHistory(const SequenceStart& start) {
  StartGrammar(start);
  std::optional<TokenHistory>& history = histories_[start.slot.value()];
  history.reset();
  if (!NeedsHistory(start.sampling)) return;
  history.emplace();
  const std::span<const TokenId> tokens = slots_.at(start.slot).tokens;
  const std::size_t prompt = OriginalPromptLength(start);
  history->AddPrompt(tokens.first(prompt));
  for (TokenId token : tokens.subspan(prompt)) history->AddGenerated(token);
}

void ModelExecutor::RebuildHistory(SlotId slot) { StartHistory(slots_.at(slot).start); }

// Guesses for the decodes that have room for more than one row. The next row of a search is none
// that could be guessed, and the mask of a grammar is made while the row before it is computed.
void ModelExecutor::Draft(const StepPlan& plan) {
  for (const Segment& segment : plan.segments) {
    Sequence& sequence = slots_.at(segment.slot);
    sequence.drafts.clear();
    if (segment.kind == Segment::Kind::kPrompt || segment.max_rows < 2) continue;
    if (sequence.start.sampling.Candidates() > 0 || !sequence.start.grammar.empty()) continue;
    FindDrafts(sequence.tokens, sequence.pace.Take(segment.max_rows - 1), sequence.drafts);
  }
}

absl::Status ModelExecutor::ReadLogits(StepResult& result) {
  picks_.assign(batch_.pick_count(), kNoPick);
  if (CollectPickRequests() && !requests_.empty()) {
    PENSTOCK_RETURN_IF_ERROR(PickOnDevice(result));
  } else {
    PENSTOCK_RETURN_IF_ERROR(PickOnHost(result));
  }
  if (grammars_) PickOwed(result);
  return absl::OkStatus();
}

absl::Status ModelExecutor::PickOnHost(StepResult& result) {
  const auto total = static_cast<std::uint32_t>(batch_.batch().logit_rows.size());
  std::size_t index = 0;  // into work()
  for (std::uint32_t first = 0; first < total; first += options_.max_logit_rows) {
    const std::uint32_t count = std::min(options_.max_logit_rows, total - first);
    const Time begin = SteadyNow();
    PENSTOCK_ASSIGN_OR_RETURN(const TensorView view, backend_.Logits(first, count));
    const Time read = SteadyNow();
    logits_time_ += read - begin;
    if (first == 0) patience_ends_ = read + kMaskPatience;
    if (communicator_.rank() != 0) continue;
    auto* rows = static_cast<float*>(view.data);
    PickRows(first, count, rows);
    auto picked = row_picks_.begin();
    for (std::uint32_t row = first; row < first + count; ++row) {
      while (row >= batch_.work()[index].first_logit + batch_.work()[index].logit_count) ++index;
      const StepWork& work = batch_.work()[index];
      SequenceResult& one = result.sequences[index];
      const std::size_t offset = std::size_t{row - first} * options_.vocabulary;
      const std::span<float> logits(rows + offset, options_.vocabulary);
      if (picked != row_picks_.end() && picked->row == row) {
        TakeRowPick(work, *picked++, one);
      } else if (slots_.at(work.segment.slot).start.sampling.Candidates() > 0) {
        FindCandidates(work, logits, one);
      } else {
        PickToken(work, row - work.first_logit + 1 + work.drafts - work.logit_count, logits, one);
      }
    }
  }
  return absl::OkStatus();
}

SampleRequest ModelExecutor::RequestFor(const Sequence& sequence) {
  const std::optional<TokenHistory>& history = histories_[sequence.start.slot.value()];
  CollectMasked(sequence, options_.eos_token_ids, masked_);
  SampleRequest request{sequence.start.sampling, sequence.start.logprobs,
                        history.has_value() ? &*history : nullptr, masked_,
                        sequence.NextOutputIndex()};
  request.watermark = options_.watermark;
  request.before = sequence.tokens.back();
  if (grammars_ && grammars_->Holds(sequence.start.slot)) AllowByGrammar(sequence, request);
  return request;
}

// A row behind a wrong draft, or behind the end, says nothing.
void ModelExecutor::PickToken(const StepWork& work, std::uint32_t draft, std::span<float> logits,
                              SequenceResult& result) {
  const Sequence& sequence = slots_.at(work.segment.slot);
  const bool right = draft == 0 || sequence.committed == result.committed_length + draft;
  if (!right || sequence.finish != ShardFinish::kNone || PutOff(work, logits)) return;
  TakeSampled(samplers_.front().Sample(logits, RequestFor(sequence)),
              picks_[work.first_pick + draft], result);
}

void ModelExecutor::TakeSampled(absl::StatusOr<SampledToken> sampled, TokenId& pick,
                                SequenceResult& result) {
  if (!sampled.ok()) {
    pick = kFailedPick;
    result.error = Message(sampled.status());
    return Fail(result);
  }
  pick = sampled->token;
  result.tokens.push_back(*std::move(sampled));
  TakeToken(pick, result);
}

absl::Status ModelExecutor::SharePicks(StepResult& result) {
  if (batch_.pick_count() == 0) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(
      communicator_.Broadcast(picks_.data(), picks_.size() * sizeof(TokenId), 0));
  for (std::size_t i = 0; i < batch_.work().size(); ++i) {
    const StepWork& work = batch_.work()[i];
    if (!work.samples()) continue;
    const auto mine = std::span<const TokenId>(picks_).subspan(work.first_pick, work.picks);
    Sequence& sequence = slots_.at(work.segment.slot);
    sequence.owes_pick = mine.front() == kNoPick && sequence.finish == ShardFinish::kNone;
    if (sequence.owes_pick) {
      PENSTOCK_RETURN_IF_ERROR(Owe(sequence, result));
    } else if (sequence.start.sampling.Candidates() > 0) {
      PENSTOCK_RETURN_IF_ERROR(TakeCandidates(mine, result.sequences[i]));
    } else if (communicator_.rank() != 0) {
      PENSTOCK_RETURN_IF_ERROR(TakePicks(mine, result.sequences[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status ModelExecutor::TakePicks(std::span<const TokenId> picks, SequenceResult& result) {
  for (const TokenId pick : picks) {
    if (pick == kNoPick) break;
    PENSTOCK_RETURN_IF_ERROR(TakePicked({pick, 0.0f}, result));
    if (pick == kFailedPick) break;
  }
  return absl::OkStatus();
}

absl::Status ModelExecutor::TakePicked(const PickedToken& pick, SequenceResult& result) {
  if (pick.token == kFailedPick) {
    Fail(result);
    return absl::OkStatus();
  }
  PENSTOCK_RETURN_IF_ERROR(CheckPick(pick.token));
  result.tokens.push_back({pick.token, pick.logprob, {}});
  TakeToken(pick.token, result);
  return absl::OkStatus();
}

// If it was drafted, its K/V are there already.
void ModelExecutor::TakeToken(TokenId token, SequenceResult& result) {
  Accept(token, result);
  Sequence& sequence = slots_.at(result.slot);
  const std::size_t next = result.tokens.size() - 1;
  const bool drafted = next < sequence.drafts.size() && sequence.drafts[next] == token;
  if (drafted && sequence.finish == ShardFinish::kNone) ++sequence.committed;
}

void ModelExecutor::FinishDrafts(StepResult& result) {
  for (SequenceResult& one : result.sequences) {
    Sequence& sequence = slots_.at(one.slot);
    const auto drafted = static_cast<std::uint32_t>(sequence.drafts.size());
    sequence.pace.Learn(drafted, sequence.committed - one.committed_length);
    result.drafted += drafted;
    one.committed_length = sequence.committed;
  }
}

absl::Status ModelExecutor::CheckPick(TokenId pick) const {
  if (pick >= 0 && static_cast<std::uint32_t>(pick) < options_.vocabulary) return absl::OkStatus();
  return absl::InternalError("rank 0 picked token " + std::to_string(pick) +
                             ", which is not in the vocabulary");
}

void ModelExecutor::Accept(TokenId token, SequenceResult& result) {
  Sequence& sequence = slots_.at(result.slot);
  AcceptToken(sequence, token, options_.eos_token_ids);
  if (auto& history = histories_[result.slot.value()]; history.has_value()) {
    history->AddGenerated(token);
  }
  const bool goes_on = sequence.finish == ShardFinish::kNone;
  if (goes_on && grammars_ && grammars_->Holds(result.slot)) {
    grammars_->Advance(result.slot, token);
  }
  result.finish = sequence.finish;
}

void ModelExecutor::Fail(SequenceResult& result) {
  slots_.at(result.slot).finish = ShardFinish::kError;
  result.finish = ShardFinish::kError;
  if (result.error.empty()) result.error = "rank 0 could not pick a token";
}

}  // namespace penstock::shard
