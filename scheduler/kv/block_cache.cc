#include "scheduler/kv/block_cache.h"

#include "common/check.h"

namespace penstock::scheduler {

BlockCache::BlockCache(std::uint32_t blocks, std::uint32_t block_size, bool sharing, PinLimits pins)
    : sharing_(sharing),
      pool_(blocks),
      index_(sharing ? blocks : 0, block_size),
      pins_(index_, blocks, sharing ? pins : PinLimits{}) {}

BlockId BlockCache::Draw() {
  while (pool_.free() == 0) {
    if (const auto victim = index_.Evict()) {
      pool_.Evict(*victim);
    } else {
      PENSTOCK_CHECK(pins_.EvictOldest(dropped_), "a cached block can be evicted");
      FreeDropped();
    }
  }
  return pool_.AllocateReserved();
}

PrefixMatch BlockCache::Match(std::string_view tenant, std::span<const TokenId> tokens,
                              StepId reader) const {
  if (!sharing_) return {};
  PrefixMatch match = index_.Lookup(tenant, tokens, reader);
  if (match.planned > 0 || pins_.size() == 0) return match;
  const auto rest = tokens.subspan(std::size_t{match.blocks} * block_size());
  if (const auto tail = pins_.TailAfter(tenant, match.last, rest, reader)) {
    match.tail = tail->block;
    match.tail_tokens = tail->tokens;
  }
  return match;
}

bool BlockCache::BeginTail(const PrefixMatch& match) {
  if (!match.tail || pool_.available() == 0) return false;
  pins_.Protect(match.tail);
  return true;
}

void BlockCache::Hold(const PrefixMatch& match, std::vector<BlockId>& blocks) {
  if (!match.last) return;
  const std::size_t first = blocks.size();
  index_.AppendPath(*match.last, blocks);
  for (const BlockId block : std::span(blocks).subspan(first)) {
    index_.Lock(block);
    pool_.AddHolder(block);
  }
}

bool BlockCache::Enter(std::string_view tenant, std::span<const BlockId> before, BlockId block,
                       std::span<const TokenId> tokens, StepId step) {
  if (!sharing_) return false;
  PENSTOCK_CHECK(pool_.holders(block) == 1, "no block has two writers");
  const auto parent = before.empty() ? std::nullopt : std::optional(before.back());
  return !index_.Insert(tenant, parent, tokens, block, step);
}

void BlockCache::Invalidate(std::optional<BlockId> block, SequenceId failed) {
  if (!sharing_) return;
  if (block) index_.Invalidate(*block, dropped_);
  pins_.DropInvalid(failed, dropped_);
  FreeDropped();
}

void BlockCache::Pin(const PinnedPrefixes::User& user) {
  if (!sharing_) return;
  pins_.Pin(user, dropped_);
  FreeDropped();
}

void BlockCache::Forget(std::string_view tenant, std::optional<RequestId> made_by) {
  pins_.Forget(tenant, made_by, dropped_);
  FreeDropped();
}

void BlockCache::ForgetAll() {
  pins_.DropAll(dropped_);
  FreeDropped();
}

void BlockCache::FreeDropped() {
  for (const BlockId block : dropped_) pool_.Evict(block);
  dropped_.clear();
}

void BlockCache::Reclaim(BlockId block) {
  const bool indexed = sharing_ && index_.Contains(block) && index_.Unlock(block);
  pool_.Reclaim(block, indexed || pins_.Owns(block));
}

}  // namespace penstock::scheduler
