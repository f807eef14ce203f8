// Reference-counted KV blocks of one kv_group of one replica group (one BlockPool per kv_group).
//
// Every block is in exactly one state, so free + used + cached + retiring = total (guarantee G1):
//   free      nobody holds it
//   used      at least one holder may still read or write it in a later plan
//   retiring  all its holders have ended, but a plan in flight may still touch it
//   cached    no holder; its contents are kept for a later prefix match
//
// A reservation is a number of blocks promised to somebody who has not drawn them yet:
// reserved <= free + cached at all times, so drawing from a reservation never fails once cached
// blocks have been evicted for it (block_cache.h does that). That is what makes guaranteed
// admission free of preemption, and the cache free: it holds only what nobody was promised.
//
// Units: blocks. Ids run from `first` to first + total - 1; a caller that keeps block 0 out of use
// passes first = 1. Order of reuse is last freed, first used: deterministic. Not synchronised.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"

namespace penstock {

class BlockPool {
 public:
  explicit BlockPool(std::uint32_t total, BlockId first = BlockId(0));

  // Promises `count` more blocks. False, and nothing changes, when fewer are available.
  bool Reserve(std::uint32_t count);
  void Unreserve(std::uint32_t count);

  // Draws one block of a reservation: free -> used, one holder. There must be a free one.
  BlockId AllocateReserved();
  // Takes an unpromised free block, if there is one.
  std::optional<BlockId> Allocate();

  // One more holder of a used or cached block (-> used). A cached one must not be promised.
  void AddHolder(BlockId block);
  // A holder goes, and no plan in flight touches the block for it. The last one frees it.
  void Release(BlockId block);
  // As Release, but the last holder leaves the block cached.
  void ReleaseToCache(BlockId block);
  // cached -> free.
  void Evict(BlockId block);

  // A holder ends while plans in flight may still touch the block. It keeps its hold until Reclaim.
  void Retire(BlockId block);
  // The result of the last plan that touches the block for a retired holder is in. The last holder
  // frees it, or leaves it cached.
  void Reclaim(BlockId block, bool to_cache = false);

  std::uint32_t total() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t used() const { return used_; }
  std::uint32_t cached() const { return cached_; }
  std::uint32_t retiring() const { return retiring_; }
  std::uint32_t reserved() const { return reserved_; }
  // Blocks that may still be promised.
  std::uint32_t available() const { return free() + cached_ - reserved_; }
  std::uint32_t holders(BlockId block) const { return At(block).holders; }

 private:
  struct Block {
    std::uint32_t holders = 0;
    std::uint32_t retired_holders = 0;  // <= holders
    bool cached = false;                // only when holders == 0
  };

  Block& At(BlockId block);
  const Block& At(BlockId block) const;
  // Counts of the states follow each change of a block.
  void Leave(const Block& block);
  void Enter(BlockId id, const Block& block);
  BlockId Take();

  BlockId first_;
  std::vector<Block> blocks_;
  std::vector<BlockId> free_;  // used as a stack
  std::uint32_t used_ = 0;
  std::uint32_t cached_ = 0;
  std::uint32_t retiring_ = 0;
  std::uint32_t reserved_ = 0;
};

}  // namespace penstock
