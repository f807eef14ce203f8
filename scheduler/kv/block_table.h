// The KV blocks of one sequence in one kv_group: blocks found in the prefix cache, then those drawn
// from its own reservation, in order of position. Blocks are drawn when a plan first needs them, so
// the pool's `used` count is what is really written.
//
// Leading blocks that are full (of planned or committed tokens) enter the prefix index one after
// the other, until one of them stands there already in another block: it and what follows stay
// private, since who holds a node of the index must hold all nodes before it.
//
// The owner must call Retire then Reclaim before destroying a table that holds anything.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "scheduler/kv/block_cache.h"

namespace penstock::scheduler {

// Blocks for `tokens` positions.
constexpr std::uint32_t BlocksFor(std::uint64_t tokens, std::uint32_t block_size) {
  return static_cast<std::uint32_t>((tokens + block_size - 1) / block_size);
}

class BlockTable {
 public:
  explicit BlockTable(std::uint32_t kv_group = 0) : kv_group_(kv_group) {}

  // Begins with the readable blocks of a match. Before anything else.
  void Adopt(BlockCache& cache, const PrefixMatch& match);
  // False when the pool cannot promise that many.
  bool Reserve(BlockCache& cache, std::uint32_t blocks);

  // Draws blocks until `tokens` positions are covered and adds one append op per block that no plan
  // has told the shards yet. The reservation must suffice (the admission policy's promise).
  void GrowTo(BlockCache& cache, std::uint64_t tokens, SlotId slot, std::vector<BlockOp>& ops);

  // Whether the next block is to enter the index once `tokens` positions are planned or committed.
  bool MayEnter(const BlockCache& cache, std::uint64_t tokens) const {
    return !private_ && (entered_ + std::uint64_t{1}) * cache.block_size() <= tokens;
  }
  // That block, with its tokens and the step that computes the last of them.
  void Enter(BlockCache& cache, std::string_view tenant, std::span<const TokenId> tokens,
             StepId step);
  // The sequence failed: what it computed itself is not to be found by others.
  void Spoil(BlockCache& cache, SequenceId sequence);

  // The sequence ended, or its row joins a dense sub-batch and leaves them: gives the undrawn
  // promise back at once; its blocks become retiring. Nothing the second time.
  void Retire(BlockCache& cache);
  // The last plan that touches the blocks has its result: those in the index stay cached, and those
  // of a kept prefix.
  void Reclaim(BlockCache& cache, SequenceId sequence);

  const std::vector<BlockId>& blocks() const { return blocks_; }
  std::uint32_t reserved() const { return reserved_; }
  // Leading blocks that came from the cache, and that are in the index.
  std::uint32_t adopted() const { return adopted_; }
  std::uint32_t entered() const { return entered_; }
  // The next full block will enter, too, unless it stands there already.
  bool enters() const { return !private_; }

 private:
  std::uint32_t kv_group_;
  std::uint32_t reserved_ = 0;  // promised, not drawn
  std::uint32_t adopted_ = 0;
  std::uint32_t entered_ = 0;
  std::uint32_t told_ = 0;  // blocks that plans have appended to the slot's table
  bool private_ = false;    // no further block enters the index
  bool retired_ = false;
  std::vector<BlockId> blocks_;
};

}  // namespace penstock::scheduler
