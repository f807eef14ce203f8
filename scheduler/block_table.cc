#include "scheduler/block_table.h"

#include "scheduler/check.h"
#include "scheduler/mutant.h"

namespace penstock::scheduler {

bool BlockTable::Reserve(BlockPool& pool, std::uint32_t blocks) {
  if (!pool.Reserve(blocks)) return false;
  reserved_ += blocks;
  return true;
}

void BlockTable::GrowTo(BlockPool& pool, std::uint32_t block_size, std::uint64_t tokens,
                        SlotId slot, std::vector<BlockOp>& ops) {
  const std::uint32_t wanted = BlocksFor(tokens - PENSTOCK_MUTANT("block-drawn-late"), block_size);
  while (blocks_.size() < wanted) {
    PENSTOCK_CHECK(reserved_ > 0, "a sequence grows inside its own reservation");
    --reserved_;
    blocks_.push_back(pool.AllocateReserved());
    BlockOp op;
    op.kind = BlockOp::Kind::kAppend;
    op.kv_group = kv_group_;
    op.slot = slot;
    op.dst = PENSTOCK_MUTANT("first-block-again") ? blocks_.front() : blocks_.back();
    ops.push_back(op);
  }
}

void BlockTable::Retire(BlockPool& pool) {
  pool.Unreserve(reserved_);
  reserved_ = 0;
  for (BlockId block : blocks_)
    PENSTOCK_MUTANT("retired-free-at-once") ? pool.Release(block) : pool.Retire(block);
}

void BlockTable::Reclaim(BlockPool& pool) {
  // Backwards, so that the stack of free blocks hands them out in the same order again.
  const auto first =
      blocks_.rbegin() + (PENSTOCK_MUTANT("last-block-leaks") && blocks_.size() > 1 ? 1 : 0);
  for (auto it = first; it != blocks_.rend(); ++it) pool.Reclaim(*it);
  blocks_.clear();
}

}  // namespace penstock::scheduler
