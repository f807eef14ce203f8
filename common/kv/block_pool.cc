#include "common/kv/block_pool.h"

#include "common/check.h"

namespace penstock {

BlockPool::BlockPool(std::uint32_t total, BlockId first) : first_(first), blocks_(total) {
  free_.reserve(total);
  for (std::uint32_t i = total; i > 0; --i) free_.push_back(BlockId(first.value() + i - 1));
}

bool BlockPool::Reserve(std::uint32_t count) {
  if (count > available()) return false;
  reserved_ += count;
  return true;
}

void BlockPool::Unreserve(std::uint32_t count) {
  PENSTOCK_CHECK(count <= reserved_, "only promised blocks are given back");
  reserved_ -= count;
}

BlockId BlockPool::AllocateReserved() {
  PENSTOCK_CHECK(reserved_ > 0, "blocks are drawn from a reservation");
  --reserved_;
  return Take();
}

std::optional<BlockId> BlockPool::Allocate() {
  if (available() == 0 || free_.empty()) return std::nullopt;
  return Take();
}

BlockId BlockPool::Take() {
  PENSTOCK_CHECK(!free_.empty(), "reserved <= free + cached, and cached blocks were evicted");
  const BlockId id = free_.back();
  free_.pop_back();
  At(id).holders = 1;
  ++used_;
  return id;
}

void BlockPool::AddHolder(BlockId id) {
  Block& block = At(id);
  PENSTOCK_CHECK(block.holders > 0 || block.cached, "a free block is taken by Allocate only");
  PENSTOCK_CHECK(!block.cached || available() > 0, "a promised block is not held again");
  Leave(block);
  ++block.holders;
  block.cached = false;
  Enter(id, block);
}

void BlockPool::Release(BlockId id) {
  Block& block = At(id);
  PENSTOCK_CHECK(block.holders > block.retired_holders, "a block is released by a live holder");
  Leave(block);
  --block.holders;
  Enter(id, block);
}

void BlockPool::Evict(BlockId id) {
  Block& block = At(id);
  PENSTOCK_CHECK(block.cached, "only cached blocks are evicted");
  Leave(block);
  block.cached = false;
  Enter(id, block);
}

void BlockPool::Retire(BlockId id) {
  Block& block = At(id);
  PENSTOCK_CHECK(block.holders > block.retired_holders, "a block is retired by a live holder");
  Leave(block);
  ++block.retired_holders;
  Enter(id, block);
}

void BlockPool::Reclaim(BlockId id, bool to_cache) {
  Block& block = At(id);
  PENSTOCK_CHECK(block.retired_holders > 0, "only retired holders are reclaimed");
  Leave(block);
  --block.holders;
  --block.retired_holders;
  block.cached = to_cache && block.holders == 0;
  Enter(id, block);
}

BlockPool::Block& BlockPool::At(BlockId id) {
  PENSTOCK_CHECK(id >= first_ && id.value() - first_.value() < blocks_.size(), "block id in range");
  return blocks_[id.value() - first_.value()];
}

const BlockPool::Block& BlockPool::At(BlockId id) const {
  return const_cast<BlockPool*>(this)->At(id);
}

void BlockPool::Leave(const Block& block) {
  if (block.holders > block.retired_holders) {
    --used_;
  } else if (block.holders > 0) {
    --retiring_;
  } else if (block.cached) {
    --cached_;
  }
}

void BlockPool::Enter(BlockId id, const Block& block) {
  if (block.holders > block.retired_holders) {
    ++used_;
  } else if (block.holders > 0) {
    ++retiring_;
  } else if (block.cached) {
    ++cached_;
  } else {
    free_.push_back(id);
  }
}

}  // namespace penstock
