// The grammar masks of the running sequences, and the logits of sequences whose mask is not ready.
//
// A mask may be late: its grammar is still being compiled, or the mask takes long to compute. The
// batch does not wait for it. Rank 0 keeps the row's logits instead, and the step reports no token
// for that sequence. Each later decode of the sequence selects the token from the kept logits once
// the mask is ready; it computes no row. The tokens are the same as if the step had waited.
//
// Forced tokens are those that a grammar leaves in one state after another, where it leaves one
// text. They are in the mask alone, too, so a step that does not append several of them at once
// selects the same ones.
//
// Bounded: at most one row of logits per slot.
// Only rank 0 has masks. On other ranks no slot has a grammar here.
//
// Threading: the model thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/time.h"
#include "shard/executor/executor_options.h"
#include "shard/executor/slot_table.h"
#include "shard/sampling/grammar_masks.h"
#include "shard/sampling/sampler.h"

namespace penstock::shard {

class GrammarState {
 public:
  // `options` outlives this object.
  GrammarState(const ExecutorOptions& options, bool is_rank_0);

  void Start(const RankSequence& sequence);
  void End(SlotId slot);

  bool HasGrammar(SlotId slot) const { return masks_ && masks_->Holds(slot); }
  void Advance(SlotId slot, std::span<const TokenId> tokens);
  void Advance(SlotId slot, TokenId token) { Advance(slot, {&token, 1}); }

  // The tokens that must follow. Waits a little for them, all rows of a step together at most
  // `forced_wait`.
  std::span<const TokenId> Forced(SlotId slot);
  void StartDrafts(Time now);

  // The token that must follow, if the grammar leaves one text. Waits if the mask is not ready.
  std::optional<TokenId> NextForced(SlotId slot);

  // Adds the mask of the sequence to `request`. Waits if the mask is not ready.
  void Restrict(const RankSequence& sequence, SampleRequest& request);

  // The logits of the step have been read: all rows together now wait a little for their masks.
  void StartWaiting(Time now);

  // If the mask of the slot is late and the driver allows that: keeps the logits, returns true.
  bool KeepIfLate(SlotId slot, std::span<const float> logits);

  // Waits a little for the mask of any of these slots.
  void WaitForAny(std::span<const SlotId> slots);
  bool IsReady(SlotId slot);
  std::vector<float> TakeLogits(SlotId slot);

 private:
  const ExecutorOptions& options_;
  std::optional<GrammarMasks> masks_;            // rank 0 only
  std::vector<std::vector<float>> kept_logits_;  // by slot
  Time wait_ends_{};                             // for masks of the current step
  Time forced_wait_ends_{};                      // the same for forced tokens
};

}  // namespace penstock::shard
