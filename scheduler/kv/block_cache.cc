#include "scheduler/kv/block_cache.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace penstock::scheduler {
namespace {

// The full blocks before a position that a row there reads, beside its own block.
std::uint32_t Coverage(WindowGroup window, std::uint32_t block_size) {
  return window.window > 0 ? (window.window - 1 + block_size - 1) / block_size : 0;
}

}  // namespace

BlockCache::BlockCache(std::uint32_t blocks, std::uint32_t block_size, bool sharing, PinLimits pins,
                       WindowGroup window, std::uint32_t snapshots)
    : sharing_(sharing),
      pool_(blocks),
      index_(sharing ? blocks : 0, block_size),
      window_tokens_(window.window),
      window_(window.blocks, sharing && window.window > 0 ? blocks : 0,
              Coverage(window, block_size)),
      snapshots_(sharing ? snapshots : 0, sharing && snapshots > 0 ? blocks : 0, 1),
      pins_(index_, window.window > 0 ? &window_ : nullptr, blocks, sharing ? pins : PinLimits{}) {}

BlockId BlockCache::Draw() {
  while (pool_.free() == 0) {
    if (const auto victim = index_.Evict()) {
      Free(*victim);
    } else {
      PENSTOCK_CHECK(pins_.EvictOldest(dropped_), "a cached block can be evicted");
      FreeDropped();
    }
  }
  return pool_.AllocateReserved();
}

BlockId BlockCache::DrawWindow() {
  while (!window_.CanDraw()) {
    PENSTOCK_CHECK(pins_.EvictOldest(dropped_), "claims never exceed the pool");
    FreeDropped();
  }
  return window_.Draw();
}

PrefixMatch BlockCache::Match(std::string_view tenant, std::span<const TokenId> tokens,
                              StepId reader) const {
  if (!sharing_) return {};
  PrefixMatch match = index_.Lookup(tenant, tokens, reader);
  match.found = match.blocks + match.planned;
  if (window_tokens_ > 0 || recurrent()) Shorten(match, reader);
  if (match.planned > 0 || pins_.size() == 0 || recurrent()) return match;
  const auto rest = tokens.subspan(std::size_t{match.blocks} * block_size());
  const auto tail = pins_.TailAfter(tenant, match.last, rest, reader);
  if (tail && (window_tokens_ == 0 || window_.CanRead(tail->block, reader))) {
    match.tail = tail->block;
    match.tail_tokens = tail->tokens;
  }
  return match;
}

// A sequence can begin only where the blocks of its window and the snapshot are present.
std::uint32_t BlockCache::LongestMatch(std::span<const BlockId> path, StepId reader) const {
  for (std::size_t length = path.size() + 1; path.size() < length;) {
    length = path.size();
    if (window_tokens_ > 0) path = path.first(window_.LongestMatch(path, reader));
    if (recurrent()) path = path.first(snapshots_.LongestMatch(path, reader));
  }
  return static_cast<std::uint32_t>(path.size());
}

// To where a sequence can begin, now and when all steps have run.
void BlockCache::Shorten(PrefixMatch& match, StepId reader) const {
  if (!match.last_any) return;
  path_.clear();
  index_.AppendPath(*match.last_any, path_);
  const std::uint32_t locked = match.blocks - match.unlocked;
  const bool all_held = recurrent() && snapshots_.available() == 0;
  const auto readable = std::span(path_).first(all_held ? 0 : match.blocks);
  match.blocks = LongestMatch(readable, reader);
  match.unlocked = match.blocks - std::min(match.blocks, locked);
  const std::uint32_t any = LongestMatch(path_, StepId(UINT64_MAX));
  match.planned = any - match.blocks;
  match.last = match.blocks > 0 ? std::optional(path_[match.blocks - 1]) : std::nullopt;
  match.last_any = any > 0 ? std::optional(path_[any - 1]) : std::nullopt;
}

std::optional<BlockId> BlockCache::HoldSnapshot(const PrefixMatch& match) {
  if (!recurrent() || !match.last) return std::nullopt;
  PENSTOCK_CHECK(snapshots_.Claim(1), "a match ends at a snapshot that can be held");
  return snapshots_.Hold(*match.last);
}

void BlockCache::ReleaseSnapshot(std::optional<BlockId>& snapshot) {
  if (!snapshot) return;
  snapshots_.Release(*std::exchange(snapshot, std::nullopt));
  snapshots_.Unclaim(1);
}

std::optional<BlockId> BlockCache::AddSnapshot(BlockId node, StepId step, SequenceId writer) {
  if (snapshots_.CanRead(node, StepId(UINT64_MAX)) || !snapshots_.Claim(1)) return std::nullopt;
  std::optional<BlockId> snapshot = snapshots_.Draw();
  const BlockId added = *snapshot;
  snapshots_.Attach(node, added, step, writer);
  ReleaseSnapshot(snapshot);
  return added;
}

bool BlockCache::BeginTail(const PrefixMatch& match) {
  if (!match.tail || !HasRoomForTail(pool_.available(), window_.available())) return false;
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

void BlockCache::HoldWindow(const PrefixMatch& match, std::vector<BlockId>& blocks) {
  if (!match.last) return;
  path_.clear();
  index_.AppendPath(*match.last, path_);
  const std::size_t before = path_.size() - std::min<std::size_t>(path_.size(), window_.coverage());
  blocks.resize(before, kNoBlock);
  for (const BlockId node : std::span(path_).subspan(before)) blocks.push_back(window_.Hold(node));
}

std::optional<NodeRef> BlockCache::Enter(std::string_view tenant, std::span<const BlockId> before,
                                         BlockId block, std::span<const TokenId> tokens,
                                         StepId step) {
  if (!sharing_) return std::nullopt;
  PENSTOCK_CHECK(pool_.holders(block) == 1, "no block has two writers");
  const auto parent = before.empty() ? std::nullopt : std::optional(before.back());
  return index_.RefTo(index_.Insert(tenant, parent, tokens, block, step).value_or(block));
}

void BlockCache::Invalidate(std::optional<BlockId> block, SequenceId failed) {
  if (!sharing_) return;
  if (block) index_.Invalidate(*block, dropped_);
  path_.clear();
  window_.AppendNodesOf(failed, path_);
  for (const BlockId node : path_) {
    if (index_.Contains(node)) {
      index_.Invalidate(node, dropped_);
    } else {
      window_.Detach(node);  // a pinned tail
    }
  }
  path_.clear();
  snapshots_.AppendNodesOf(failed, path_);
  for (const BlockId node : path_) snapshots_.Detach(node);
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

void BlockCache::Free(BlockId block) {
  window_.Detach(block);
  snapshots_.Detach(block);
  pool_.Evict(block);
}

void BlockCache::FreeDropped() {
  for (const BlockId block : dropped_) Free(block);
  dropped_.clear();
}

void BlockCache::Reclaim(BlockId block) {
  const bool indexed = sharing_ && index_.Contains(block) && index_.Unlock(block);
  const bool kept = indexed || pins_.Owns(block);
  if (sharing_ && !kept) {
    window_.Detach(block);
    snapshots_.Detach(block);
  }
  pool_.Reclaim(block, kept);
}

}  // namespace penstock::scheduler
