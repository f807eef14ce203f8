// The KV blocks of one kv_group of one replica group together with what they hold: BlockPool (who
// has which block) and PrefixIndex (which tokens stand in it), kept in agreement.
//
//   a block in the index   each of its holders has one lock on its node
//   cached in the pool     = unlocked in the index: it is found by a later prompt until it is
//                          evicted, the least recently used leaf first, when a promised block is
//                          drawn and none is free
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
#include "scheduler/block_pool.h"
#include "scheduler/prefix_index.h"

namespace penstock::scheduler {

class BlockCache {
 public:
  BlockCache(std::uint32_t blocks, std::uint32_t block_size, bool sharing);

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
  // What was computed from this block of the index on is not to be relied on by anybody new.
  void Spoil(BlockId block);

  // The two ends of a hold (BlockPool). Blocks of a sequence are reclaimed from the last to the
  // first; those in the index stay cached.
  void Retire(BlockId block) { pool_.Retire(block); }
  void Reclaim(BlockId block);

 private:
  const bool sharing_;
  BlockPool pool_;
  PrefixIndex index_;
  std::vector<BlockId> spoilt_;
};

}  // namespace penstock::scheduler
