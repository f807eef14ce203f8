#include "shard/executor/grammar_state.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "common/status.h"

namespace penstock::shard {
namespace {

// How long one step waits for late masks, all rows together. A sequence whose mask is later than
// that waits for its next step.
constexpr std::chrono::milliseconds kMaskWait{1};

// The same for a step that computes nothing: only a request that arrives meanwhile is delayed.
constexpr std::chrono::milliseconds kIdleMaskWait{5};

}  // namespace

GrammarState::GrammarState(const ExecutorOptions& options, bool is_rank_0)
    : options_(options), kept_logits_(options.slots) {
  if (options.grammars != nullptr && is_rank_0) masks_.emplace(options.slots, *options.grammars);
}

// The grammar describes the output only, so the prompt is left out.
void GrammarState::Start(const RankSequence& sequence) {
  if (!masks_) return;
  const SequenceStart& start = sequence.start;
  masks_->End(start.slot);
  if (start.grammar.empty()) return;
  const std::span<const TokenId> tokens = sequence.tokens;
  const std::uint32_t prompt = sequence.OriginalPromptLength();
  // Which bad word would be completed depends on the spelling, so the model may choose it.
  const bool forces = options_.forced_tokens && start.sampling.bad_words.empty() &&
                      start.sampling.Candidates() == 0;
  masks_->Start(start.slot, start.grammar, tokens.subspan(prompt),
                {forces, tokens.first(prompt), start.stop_token_ids});
}

void GrammarState::End(SlotId slot) {
  if (masks_) masks_->End(slot);
  std::vector<float>().swap(kept_logits_[slot.value()]);
}

void GrammarState::Advance(SlotId slot, std::span<const TokenId> tokens) {
  if (HasGrammar(slot)) masks_->Advance(slot, tokens);
}

void GrammarState::StartDrafts(Time now) { forced_wait_ends_ = now + options_.forced_wait; }

std::span<const TokenId> GrammarState::Forced(SlotId slot) {
  if (!options_.forced_tokens || !HasGrammar(slot)) return {};
  masks_->AnyReady({&slot, 1}, forced_wait_ends_);
  return masks_->Forced(slot);
}

std::optional<TokenId> GrammarState::NextForced(SlotId slot) {
  if (!options_.forced_tokens || !HasGrammar(slot)) return std::nullopt;
  const auto row = masks_->Get(slot);
  if (!row.ok() || row->forced.empty()) return std::nullopt;
  return row->forced.front();
}

// Stop tokens end an output just as EOS does, so they are allowed wherever EOS is. Where only the
// end may follow, min_new_tokens is ignored.
void GrammarState::Restrict(const RankSequence& sequence, SampleRequest& request) {
  if (!HasGrammar(sequence.start.slot)) return;
  const auto row = masks_->Get(sequence.start.slot);
  if (!row.ok()) {
    request.refusal = std::string(kGrammarError) + Message(row.status());
    return;
  }
  if (row->only_end) request.masked = {};
  const bool may_end = std::any_of(options_.eos_token_ids.begin(), options_.eos_token_ids.end(),
                                   [&row](TokenId eos) { return Contains(row->allowed, eos); });
  if (may_end) {
    for (const TokenId stop : sequence.start.stop_token_ids) Add(stop, row->allowed);
  }
  request.allowed = row->allowed;
}

void GrammarState::StartWaiting(Time now) { wait_ends_ = now + kMaskWait; }

bool GrammarState::KeepIfLate(SlotId slot, std::span<const float> logits) {
  if (!options_.late_masks || !HasGrammar(slot)) return false;
  if (masks_->AnyReady({&slot, 1}, wait_ends_)) return false;
  kept_logits_[slot.value()].assign(logits.begin(), logits.end());
  return true;
}

void GrammarState::WaitForAny(std::span<const SlotId> slots) {
  if (masks_) masks_->AnyReady(slots, SteadyNow() + kIdleMaskWait);
}

bool GrammarState::IsReady(SlotId slot) { return masks_ && masks_->AnyReady({&slot, 1}, Time{}); }

std::vector<float> GrammarState::TakeLogits(SlotId slot) {
  return std::exchange(kept_logits_[slot.value()], {});
}

}  // namespace penstock::shard
