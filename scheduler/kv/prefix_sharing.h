// What new requests share with the running sequences of one replica group. It tells which leading
// blocks a request finds, and which prefix it should wait for because another sequence is about to
// compute it. It enters blocks of running sequences into the index.
//
// Waiting for a prefix. Every plan after the one that computes a block can read it. So of many
// requests with one prefix that arrive together, the first computes it. The others wait until it is
// planned, not until it is computed, and then begin after it. Waiting is cheaper than computing the
// same tokens again:
//   * While the first has prompt tokens left, it comes before any new request and takes what the
//     step's budget has for prompts. A request that was admitted would get none.
//   * So a request loses at most the step that plans the last shared block.
//   * In exchange no shared token is computed twice, and steps with fewer tokens are shorter for
//     all sequences in them.
// A request waits for a sequence that progresses in every plan, so it waits only until the last
// shared block is planned or that sequence ends (finished, cancelled or preempted).
//
// Not synchronised; one owner, the GroupScheduler.
#pragma once

#include <optional>
#include <vector>

#include "common/ids.h"
#include "scheduler/kv/text_regime.h"
#include "scheduler/order/waiting_request.h"
#include "scheduler/step/sequence_table.h"

namespace penstock::scheduler {

// A prefix that a running sequence is about to compute for a request, too.
struct AwaitedPrefix {
  RequestId owner;            // of the sequence
  std::uint32_t shared = 0;   // leading tokens that both need
  std::uint32_t present = 0;  // of these, tokens that the step being composed can read
};

class PrefixSharing {
 public:
  PrefixSharing(SequenceTable& table, const TextRegime& regime) : table_(table), regime_(regime) {}

  // What the request finds if step `reader` admits it: at most all but its last token, whose logits
  // are needed. Nothing for a request that needs the logits of its whole prompt.
  PrefixMatch Match(const Work& work, StepId reader) const;

  // The prefix that the request should wait for instead of being admitted in step `reader`.
  std::optional<AwaitedPrefix> WhatToAwait(const Work& work, StepId reader) const;

  // Enters full blocks of the sequence, up to its known length, into the index, and attaches those
  // of the window group. `step` computes them.
  void Enter(Sequence& sequence, StepId step);
  // The node with the last of the sequence's first `tokens` tokens, a number of full blocks.
  std::optional<BlockId> NodeAt(const Sequence& sequence, std::uint32_t tokens) const;
  // Pins the prefix that the request asks for, if `step` or earlier ones compute all of it.
  void Pin(Sequence& sequence, StepId step);

 private:
  // Full blocks of `tokens` that the sequence has or will compute, `matched` or more.
  std::uint32_t SharedBlocks(const Sequence& sequence, std::span<const TokenId> tokens,
                             std::uint32_t matched) const;
  void Follow(Sequence& sequence, StepId step);
  void Attach(Sequence& sequence, std::optional<BlockId> node, std::uint32_t block, StepId step);
  // The tokens that a match may cover; `scratch_` may hold them.
  std::span<const TokenId> Shareable(const Work& work) const;

  SequenceTable& table_;
  const TextRegime regime_;
  mutable std::vector<TokenId> scratch_;
  mutable std::vector<TokenId> other_;  // of the sequence that a request is compared with
};

}  // namespace penstock::scheduler
