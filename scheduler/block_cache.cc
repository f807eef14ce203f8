#include "scheduler/block_cache.h"

#include "scheduler/check.h"
#include "scheduler/mutant.h"

namespace penstock::scheduler {

BlockCache::BlockCache(std::uint32_t blocks, std::uint32_t block_size, bool sharing)
    : sharing_(sharing), pool_(blocks), index_(sharing ? blocks : 0, block_size) {}

BlockId BlockCache::Draw() {
  if (pool_.free() == 0) {
    const auto victim = index_.Evict();
    PENSTOCK_CHECK(victim.has_value(), "a cached block can be evicted");
    pool_.Evict(*victim);
  }
  return pool_.AllocateReserved();
}

PrefixMatch BlockCache::Match(std::string_view tenant, std::span<const TokenId> tokens,
                              StepId reader) const {
  if (!sharing_) return {};
  return index_.Lookup(PENSTOCK_MUTANT("tenants-share") ? "" : tenant, tokens, reader);
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

void BlockCache::Spoil(BlockId block) {
  spoilt_.clear();
  index_.Spoil(block, spoilt_);
  for (const BlockId gone : spoilt_) pool_.Evict(gone);
}

void BlockCache::Reclaim(BlockId block) {
  const bool keep = sharing_ && index_.Contains(block) && index_.Unlock(block);
  pool_.Reclaim(block, keep);
}

}  // namespace penstock::scheduler
