// Reference-counted KV blocks of one KV group of one replica group.
//
// Every block is in exactly one state, so free + used + cached + retiring = total (guarantee G1). A
// free block has no holder. A used block has a holder that a later plan may name. All holders of a
// retiring block have ended, but a plan in flight may still read or write it. A cached block has no
// holder, and its contents are kept for a later prefix match.
//
// A reservation counts blocks that are allocated later. reserved <= free + cached always holds,
// so AllocateReserved cannot fail once the caller has evicted enough cached blocks. Guaranteed
// admission needs no preemption for this reason, and the cache holds only blocks that are not
// reserved.
//
// Ids run from `first` to first + total - 1. The block that was freed last is allocated first, so
// allocation is deterministic. Not thread-safe.
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

  // Allocates one reserved block: free -> used, one holder. Requires a free block.
  BlockId AllocateReserved();
  // Allocates a free block that is not reserved, if there is one.
  std::optional<BlockId> Allocate();

  // Adds a holder to a used or cached block (-> used). Requires: a cached block is not reserved.
  void AddHolder(BlockId block);
  // Removes a holder whose block no plan in flight uses. The last holder frees the block.
  void Release(BlockId block);
  // cached -> free.
  void Evict(BlockId block);

  // Marks a holder as ended. It stays a holder until Reclaim, since plans in flight may use the
  // block.
  void Retire(BlockId block);
  // Removes an ended holder after the result of the last plan that uses the block for it. The last
  // holder frees the block, or leaves it cached.
  void Reclaim(BlockId block, bool to_cache = false);

  std::uint32_t total() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t used() const { return used_; }
  std::uint32_t cached() const { return cached_; }
  std::uint32_t retiring() const { return retiring_; }
  std::uint32_t reserved() const { return reserved_; }
  // Blocks that can still be reserved.
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
  // Called before and after each change of a block, to update the counts.
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
