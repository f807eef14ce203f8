// The KV blocks of one kv_group of one replica group together with what they hold: BlockPool (who
// has which block) and PrefixIndex (which tokens stand in it), kept in agreement.
//
//   a block in the index   each of its holders has one lock on its node
//   cached in the pool     = unlocked in the index, or the tail of a kept prefix. It is found by a
//                          later prompt until it is evicted, the least recently used leaf first,
//                          when a promised block is drawn and none is free. What is pinned goes
//                          last (pinned_prefixes.h)
//
// One block has one writer: the sequence that drew it, and only before it entered the index (it is
// full then, and full blocks are not written again). Many may read it.
//
// Without sharing nothing enters the index and this is a BlockPool. Not synchronised.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/kv/block_pool.h"
#include "scheduler/kv/pinned_prefixes.h"
#include "scheduler/kv/prefix_index.h"

namespace penstock::scheduler {

class BlockCache {
 public:
  BlockCache(std::uint32_t blocks, std::uint32_t block_size, bool sharing, PinLimits pins = {});

  const BlockPool& pool() const { return pool_; }
  const PrefixIndex& index() const { return index_; }
  std::uint32_t block_size() const { return index_.block_size(); }
  bool sharing() const { return sharing_; }

  bool Reserve(std::uint32_t count) { return pool_.Reserve(count); }
  void Unreserve(std::uint32_t count) { pool_.Unreserve(count); }
  // Draws one block of a reservation; evicts for it when none is free.
  BlockId Draw();

  // What a step `reader` of the tenant finds; nothing without sharing.
  PrefixMatch Match(std::string_view tenant, std::span<const TokenId> tokens, StepId reader) const;
  // One more holder of the readable blocks of a match, which are appended to `blocks`. Those of
  // them that are unlocked must be available.
  void Hold(const PrefixMatch& match, std::vector<BlockId>& blocks);
  // `block`, whose one holder is the caller, holds these tokens once `step` has run. `before` are
  // the blocks before it, all in the index and held by the caller. False when the tokens stand in
  // another block already: `block` stays private.
  bool Enter(std::string_view tenant, std::span<const BlockId> before, BlockId block,
             std::span<const TokenId> tokens, StepId step);
  // What was computed from this block of the index on (none: nothing in the index), and in the
  // blocks of the failed sequence, is not to be relied on by anybody new.
  void Spoil(std::optional<BlockId> block, SequenceId failed);

  // Prefixes that are kept beyond their users.
  void Keep(const PinnedPrefixes::User& user);
  void Forget(std::string_view tenant, std::optional<RequestId> made_by);
  void ForgetAll();
  std::vector<PinChange> TakePinChanges() { return pins_.TakeChanges(); }
  const PinnedPrefixes& pins() const { return pins_; }
  // Lets the tail of a match be copied by the plan being made; it stays until FinishTail. False
  // when its block may be needed for a promise: then it is not to be copied.
  bool BeginTail(const PrefixMatch& match);
  void FinishTail() { pins_.Protect(std::nullopt); }

  // The two ends of a hold (BlockPool). Blocks of a sequence are reclaimed from the last to the
  // first, after Settle; those in the index stay cached.
  void Settle(SequenceId sequence) { pins_.Settle(sequence); }
  void Retire(BlockId block) { pool_.Retire(block); }
  void Reclaim(BlockId block);

 private:
  const bool sharing_;
  BlockPool pool_;
  PrefixIndex index_;
  PinnedPrefixes pins_;
  std::vector<BlockId> gone_;  // fallen out of the index, still cached in the pool

  void FreeGone();
};

}  // namespace penstock::scheduler
