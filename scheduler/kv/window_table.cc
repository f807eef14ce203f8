#include "scheduler/kv/window_table.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/check.h"
#include "scheduler/kv/block_table.h"

namespace penstock::scheduler {

bool WindowTable::Claim(BlockCache& cache, std::uint32_t blocks) {
  if (!cache.window().Claim(blocks)) return false;
  claim_ += blocks;
  return true;
}

void WindowTable::Adopt(BlockCache& cache, const PrefixMatch& match) {
  if (cache.window_tokens() == 0) return;
  cache.HoldWindow(match, blocks_);
  released_ = match.blocks - std::min(match.blocks, cache.window().coverage());
}

void WindowTable::MoveTo(BlockCache& cache, std::uint64_t position) {
  if (position < cache.window_tokens() || cache.window_tokens() == 0) return;
  const std::uint64_t first = position + 1 - cache.window_tokens();  // that the row reads
  const auto before = std::min<std::uint64_t>(first / cache.block_size(), blocks_.size());
  for (; released_ < before; ++released_) {
    cache.window().Release(blocks_[released_]);
    blocks_[released_] = kNoBlock;
  }
}

void WindowTable::GrowTo(BlockCache& cache, std::uint64_t tokens, SlotId slot,
                         std::vector<BlockOp>& ops) {
  if (cache.window_tokens() == 0) return;
  const std::uint32_t wanted = BlocksFor(tokens, cache.block_size());
  while (blocks_.size() < wanted) {
    PENSTOCK_CHECK(held() < claim_, "a sequence holds at most its claim");
    blocks_.push_back(cache.DrawWindow());
  }
  AppendBlocks(kGroup, slot, std::span(blocks_).subspan(appended_), ops);
  appended_ = static_cast<std::uint32_t>(blocks_.size());
}

void WindowTable::Retire(BlockCache& cache) {
  cache.window().Unclaim(std::exchange(claim_, 0) - held());
  for (std::size_t i = released_; i < blocks_.size(); ++i) cache.window().Retire(blocks_[i]);
}

void WindowTable::Reclaim(BlockCache& cache) {
  // From the last to the first, like BlockTable.
  for (std::size_t i = blocks_.size(); i > released_; --i) cache.window().Reclaim(blocks_[i - 1]);
  blocks_.clear();
  released_ = 0;
}

}  // namespace penstock::scheduler
