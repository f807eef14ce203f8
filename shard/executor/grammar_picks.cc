// ModelExecutor's rows under a grammar. A mask that is not ready when its row is (the grammar is
// being compiled, or is a costly one) holds up nobody: rank 0 keeps the row's logits, the others
// learn that nothing was picked, and each later decode of the sequence picks from them if the mask
// is there by then, without computing a row. Tokens are the same as if the step had waited.
//
// Bounded: one row of logits per slot, and only for as long as its pick is owed.
#include <algorithm>
#include <string>
#include <utility>

#include "common/status.h"
#include "common/time.h"
#include "shard/executor/model_executor.h"
#include "shard/sampling/grammar_error.h"

namespace penstock::shard {
namespace {

// A step of nothing but owed picks: there is nobody to be held up but who arrives meanwhile.
constexpr std::chrono::milliseconds kIdlePatience{5};

// What earlier starts of the request have generated counts as generated.
std::size_t OriginalPromptLength(const SequenceStart& start) {
  return start.prompt_length - std::min(start.sample_index_base, start.prompt_length);
}

}  // namespace

// A grammar knows nothing of the prompt: what this and earlier starts have generated leads to where
// the output stands.
void ModelExecutor::StartGrammar(const SequenceStart& start) {
  if (!grammars_) return;
  grammars_->End(start.slot);
  if (start.grammar.empty()) return;
  const std::span<const TokenId> tokens = slots_.at(start.slot).tokens;
  grammars_->Start(start.slot, start.grammar, tokens.subspan(OriginalPromptLength(start)));
}

void ModelExecutor::EndGrammar(SlotId slot) {
  if (grammars_) grammars_->End(slot);
  std::vector<float>().swap(kept_[slot.value()]);
}

// Stop tokens end an output as EOS does, so they are allowed where it is. Where only the end may
// follow, min_new_tokens cannot ask for more.
void ModelExecutor::AllowByGrammar(const Sequence& sequence, SampleRequest& request) {
  const auto row = grammars_->Get(sequence.start.slot);
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

// Rank 0: whether nothing can be picked from these logits yet; then they are kept.
bool ModelExecutor::PutOff(const StepWork& work, std::span<const float> logits) {
  const SlotId slot = work.segment.slot;
  if (work.owed || !options_.late_masks || !grammars_ || !grammars_->Holds(slot)) return false;
  if (grammars_->AnyReady({&slot, 1}, patience_ends_)) return false;
  kept_[slot.value()].assign(logits.begin(), logits.end());
  return true;
}

// Rank 0, once the rows of the step have picked.
void ModelExecutor::PickOwed(StepResult& result) {
  std::vector<SlotId> owing;
  for (const StepWork& work : batch_.work()) {
    if (work.owed) owing.push_back(work.segment.slot);
  }
  if (owing.empty()) return;
  if (batch_.batch().segments.empty()) grammars_->AnyReady(owing, SteadyNow() + kIdlePatience);
  for (std::size_t i = 0; i < batch_.work().size(); ++i) {
    const StepWork& work = batch_.work()[i];
    const SlotId slot = work.segment.slot;
    if (!work.owed || !grammars_->AnyReady({&slot, 1}, Time{})) continue;
    std::vector<float> logits = std::exchange(kept_[slot.value()], {});
    if (slots_.at(slot).start.sampling.Candidates() > 0) {
      FindCandidates(work, logits, result.sequences[i]);
    } else {
      PickToken(work, 0, logits, result.sequences[i]);
    }
  }
}

// All ranks: rank 0 has put off the pick, or still does.
absl::Status ModelExecutor::Owe(Sequence& sequence, StepResult& result) {
  if (sequence.start.grammar.empty()) return absl::InternalError("rank 0 picked no token");
  sequence.candidates.clear();
  ++result.late_masks;
  return absl::OkStatus();
}

}  // namespace penstock::shard
