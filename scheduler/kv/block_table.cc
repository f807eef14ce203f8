#include "scheduler/kv/block_table.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace penstock::scheduler {

void BlockTable::Adopt(BlockCache& cache, const PrefixMatch& match) {
  PENSTOCK_CHECK(blocks_.empty(), "a sequence begins with cached blocks");
  cache.Hold(match, blocks_);
  adopted_ = entered_ = match.blocks;
}

void AppendBlocks(std::uint32_t kv_group, SlotId slot, std::span<const BlockId> blocks,
                  std::vector<BlockOp>& ops) {
  for (const BlockId block : blocks) {
    BlockOp op;
    op.kind = BlockOp::Kind::kAppend;
    op.kv_group = kv_group;
    op.slot = slot;
    op.dst = block;
    ops.push_back(op);
  }
}

bool BlockTable::Reserve(BlockCache& cache, std::uint32_t blocks) {
  if (!cache.Reserve(blocks)) return false;
  reserved_ += blocks;
  const std::size_t most = blocks_.size() + reserved_;
  if (most > blocks_.capacity()) blocks_.reserve(std::max(most, 2 * blocks_.capacity()));
  return true;
}

void BlockTable::Append(BlockCache& cache, std::uint64_t tokens, SlotId slot,
                        std::vector<BlockOp>& ops) {
  const std::uint32_t wanted = BlocksFor(tokens, cache.block_size());
  while (blocks_.size() < wanted) {
    PENSTOCK_CHECK(reserved_ > 0, "a sequence grows inside its own reservation");
    --reserved_;
    blocks_.push_back(cache.Draw());
  }
  AppendBlocks(kv_group_, slot, std::span(blocks_).subspan(appended_), ops);
  appended_ = static_cast<std::uint32_t>(blocks_.size());
}

std::optional<BlockId> BlockTable::Enter(BlockCache& cache, std::string_view tenant,
                                         std::span<const TokenId> tokens, StepId step) {
  const std::span<const BlockId> before = std::span(blocks_).first(entered_);
  const auto node = cache.Enter(tenant, before, blocks_[entered_], tokens, step);
  if (node && node->block == blocks_[entered_]) {
    ++entered_;
    return node->block;
  }
  private_ = true;
  if (!node || cache.index().IsInvalid(node->block)) return std::nullopt;
  same_ = node;
  followed_ = entered_ + 1;
  return node->block;
}

std::optional<BlockId> BlockTable::Follow(const BlockCache& cache,
                                          std::span<const TokenId> tokens) {
  same_ = cache.index().After(*same_, tokens);
  if (!same_) return std::nullopt;
  ++followed_;
  return same_->block;
}

void BlockTable::Invalidate(BlockCache& cache, SequenceId sequence) {
  private_ = true;
  same_.reset();
  cache.Invalidate(entered_ > adopted_ ? std::optional(blocks_[adopted_]) : std::nullopt, sequence);
}

void BlockTable::Retire(BlockCache& cache) {
  if (std::exchange(retired_, true)) return;
  private_ = true;
  same_.reset();
  cache.Unreserve(reserved_);
  reserved_ = 0;
  for (const BlockId block : blocks_) cache.Retire(block);
}

void BlockTable::Reclaim(BlockCache& cache, SequenceId sequence) {
  cache.BeginReclaim(sequence);
  // From the last to the first: the stack of free blocks then gives them out in the same order, and
  // the cache keeps the beginning of the sequence longest.
  for (auto it = blocks_.rbegin(); it != blocks_.rend(); ++it) cache.Reclaim(*it);
  blocks_.clear();
  adopted_ = entered_ = 0;
}

}  // namespace penstock::scheduler
