// The running sequences of a rank: their tokens, lengths and block tables. Knows no model, so the
// simulated shard uses it too.
//
// Every plan has passed the PlanChecker; nothing is checked here.
//
// Threading: the model thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "shard/executor/drafts.h"

namespace penstock::shard {

// One running sequence as its rank sees it.
struct RankSequence {
  SequenceStart start;  // without its prompt, which is the beginning of `tokens`

  // The prompt, then the sampled tokens. After the prompt tokens.size() is committed + 1: the last
  // token is known, its K and V are not written yet. With contrastive search tokens.size() is
  // committed; the next token is one of `candidates`.
  std::vector<TokenId> tokens;
  std::vector<TokenId> candidates;
  std::vector<TokenId> drafts;  // for the positions after `tokens`, of the current step
  bool forced = false;          // they are surely right: the grammar leaves no other text
  DraftPace pace;
  std::uint32_t committed = 0;  // positions whose K and V are written
  ShardFinish finish = ShardFinish::kNone;
  // The newest row was computed, but its grammar mask was not ready, so no token was selected from
  // it. Until then a decode computes no row. The last of `tokens` is committed.
  bool selection_pending = false;
  std::vector<std::vector<BlockId>> tables;  // by kv_group
  std::optional<SlotId> row;                 // it has this padded KV row and no blocks

  // Tokens after `tokens` that the device samples in steps in flight. The second is the index of
  // the newest of them among the tokens of the step that was begun last, or -1.
  std::uint32_t tokens_in_flight = 0;
  std::int32_t newest_sample = -1;

  std::uint32_t Generated() const {
    return static_cast<std::uint32_t>(tokens.size()) - start.prompt_length;
  }
  // Index, in the output of the request, of the token that is sampled next.
  std::uint32_t NextOutputIndex() const {
    return start.sample_index_base + Generated() + tokens_in_flight;
  }
  // Length of the request's own prompt. A restarted sequence has earlier output in start.prompt.
  std::uint32_t OriginalPromptLength() const {
    return start.prompt_length - std::min(start.sample_index_base, start.prompt_length);
  }
};

class SlotTable {
 public:
  SlotTable() = default;
  SlotTable(std::uint32_t slots, std::uint32_t kv_groups);

  // Applies the control part of the plan. Block copies are left to the backend.
  void Apply(const StepPlan& plan);

  RankSequence& at(SlotId slot) { return *slots_[slot.value()]; }
  const RankSequence& at(SlotId slot) const { return *slots_[slot.value()]; }

  void Reset();

 private:
  std::uint32_t kv_groups_ = 1;
  std::vector<std::optional<RankSequence>> slots_;
};

// Sets `out` to the tokens that must not be sampled now: EOS and stop tokens, while fewer than
// min_new_tokens were generated since the start, and those that would complete a bad word.
void CollectMasked(const RankSequence& sequence, std::span<const TokenId> eos,
                   std::vector<TokenId>& out);

// Appends the sampled token and decides whether it ends the sequence. As in TGI, length comes
// before EOS and EOS before a stop token.
void AcceptToken(RankSequence& sequence, TokenId token, std::span<const TokenId> eos);

}  // namespace penstock::shard
