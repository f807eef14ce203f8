// The sequences that a shard holds: their tokens, lengths and block tables, as plans and samples
// move them on. Free of any model, so the simulated shard uses it as well.
//
// A plan that comes here has passed the PlanChecker; nothing is checked again.
// One owner: the model thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "shard/executor/drafts.h"

namespace penstock::shard {

struct Sequence {
  SequenceStart start;  // without its prompt, which opens `tokens`

  // Prompt, then what was sampled. While the sequence runs, tokens.size() is committed + 1 after
  // the prompt: the last token is known, its K/V are not yet written. With contrastive search it is
  // committed: what comes next is one of `candidates`.
  std::vector<TokenId> tokens;
  std::vector<TokenId> candidates;
  std::vector<TokenId> drafts;  // guesses at what follows `tokens`, of the present step
  DraftPace pace;
  std::uint32_t committed = 0;  // positions whose K/V are written
  ShardFinish finish = ShardFinish::kNone;
  // Its newest row has been computed, and nothing was picked from it: the mask of its grammar was
  // not ready. A decode of it computes no row, until that is made up for. The last of `tokens` is
  // committed then.
  bool owes_pick = false;
  std::vector<std::vector<BlockId>> tables;  // per kv_group; a released entry keeps its id
  bool in_cells = false;                     // padded KV layout: it has left its blocks

  // Steps that run ahead of the host: tokens behind `tokens` that were sampled, or are being
  // sampled, and are not known yet; and which pick of the step begun last is the newest of them.
  std::uint32_t unknown = 0;
  std::int32_t newest_pick = -1;

  std::uint32_t Generated() const {
    return static_cast<std::uint32_t>(tokens.size()) - start.prompt_length;
  }
  // Position, in the request's output, of the token that is sampled next.
  std::uint32_t NextOutputIndex() const { return start.sample_index_base + Generated() + unknown; }
};

class SlotTable {
 public:
  SlotTable() = default;
  SlotTable(std::uint32_t slots, std::uint32_t kv_groups);

  // Ends, truncates, starts, appends and releases blocks. Copies are the backend's business.
  void Apply(const StepPlan& plan);

  Sequence& at(SlotId slot) { return *slots_[slot.value()]; }
  const Sequence& at(SlotId slot) const { return *slots_[slot.value()]; }

  void Reset();

 private:
  std::uint32_t kv_groups_ = 1;
  std::vector<std::optional<Sequence>> slots_;
};

// End tokens that must not be picked now: EOS and stop tokens while fewer than min_new_tokens were
// generated since the start. `out` is cleared first.
void CollectMasked(const Sequence& sequence, std::span<const TokenId> eos,
                   std::vector<TokenId>& out);

// Appends the sampled token and decides whether it ends the sequence, in TGI's order: length before
// end-of-sequence before stop token.
void AcceptToken(Sequence& sequence, TokenId token, std::span<const TokenId> eos);

}  // namespace penstock::shard
