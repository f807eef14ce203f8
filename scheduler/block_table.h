// The KV blocks of one sequence in one kv_group: a reservation for its worst case and the blocks
// drawn from it so far, in order of position. Blocks are drawn when a plan first needs them, so
// the pool's `used` count is what is really written.
//
// The owner must call Retire then Reclaim before destroying a table that holds anything.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "scheduler/block_pool.h"

namespace penstock::scheduler {

// Blocks for `tokens` positions.
constexpr std::uint32_t BlocksFor(std::uint64_t tokens, std::uint32_t block_size) {
  return static_cast<std::uint32_t>((tokens + block_size - 1) / block_size);
}

class BlockTable {
 public:
  explicit BlockTable(std::uint32_t kv_group = 0) : kv_group_(kv_group) {}

  // False when the pool cannot promise that many.
  bool Reserve(BlockPool& pool, std::uint32_t blocks);

  // Draws blocks until `tokens` positions are covered and adds one append op per block. The
  // reservation must suffice (that is the admission policy's promise).
  void GrowTo(BlockPool& pool, std::uint32_t block_size, std::uint64_t tokens, SlotId slot,
              std::vector<BlockOp>& ops);

  // The sequence ended: gives the undrawn promise back at once; drawn blocks become retiring.
  void Retire(BlockPool& pool);
  // The last plan that names the sequence has its result.
  void Reclaim(BlockPool& pool);

  const std::vector<BlockId>& blocks() const { return blocks_; }
  std::uint32_t reserved() const { return reserved_; }

 private:
  std::uint32_t kv_group_;
  std::uint32_t reserved_ = 0;  // promised, not drawn
  std::vector<BlockId> blocks_;
};

}  // namespace penstock::scheduler
