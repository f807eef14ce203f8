// What one replica group's running sequences and newcomers share: which leading blocks a newcomer
// finds, whether it should wait for blocks that another is about to compute, and which blocks of a
// running sequence others may find.
//
// Joining. Since plans run in order, a block is readable by every plan after the one that computes
// it. So of many requests with one prefix that arrive together, the first computes it; the others
// wait until it is planned (not until it is computed) and then begin behind it. Waiting is cheaper
// than computing the same tokens again:
//   * as long as the first has prompt tokens left, it comes before any newcomer and takes what the
//     step's budget leaves for prompts; a newcomer that were admitted would get none;
//   * so at most one step is lost, the one that plans the last shared block, and only the part of
//     it that the newcomer could have used;
//   * for that, no shared token is computed twice, and every step with fewer tokens is shorter for
//     everybody in it.
// A request waits behind one that runs and moves on in every plan, so waiting ends: with the last
// shared block planned, or with the other's end (finished, cancelled, preempted).
//
// Not synchronised; one owner, the GroupScheduler.
#pragma once

#include <optional>
#include <vector>

#include "common/ids.h"
#include "scheduler/order/waiting_request.h"
#include "scheduler/step/sequence_table.h"

namespace penstock::scheduler {

// A prefix that a running sequence is about to compute for a request, too.
struct AwaitedPrefix {
  RequestId owner;            // of the sequence
  std::uint32_t shared = 0;   // leading tokens that both need
  std::uint32_t present = 0;  // of these, tokens that the step being made can read
};

class PrefixSharing {
 public:
  explicit PrefixSharing(SequenceTable& table) : table_(table) {}

  // What the request finds when step `reader` admits it: at most all but its last token, which must
  // be computed to know what follows. Nothing for requests that need every row of their prompt.
  PrefixMatch Match(const Work& work, StepId reader) const;

  // Whom the request should wait for instead of being admitted by step `reader`.
  std::optional<AwaitedPrefix> WhatToAwait(const Work& work, StepId reader) const;

  // Full blocks of the sequence up to its known length enter the index, computed by `step`.
  void Enter(Sequence& sequence, StepId step);
  // What the request wants kept is kept once `step` or an earlier one computes all of it.
  void Keep(Sequence& sequence, StepId step);

 private:
  // The tokens that a match may cover; `scratch_` may hold them.
  std::span<const TokenId> Shareable(const Work& work) const;

  SequenceTable& table_;
  mutable std::vector<TokenId> scratch_;
};

}  // namespace penstock::scheduler
