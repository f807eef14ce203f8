// The KV blocks of one replica group: BlockPool knows who holds each block of KV group 0,
// PrefixIndex knows which tokens it has. This class keeps the two in agreement:
//
//   a block in the index   each of its holders has one lock on its node
//   a cached block         is unlocked in the index, or is the tail of a pinned prefix. Later
//                          prompts find it until it is evicted. When a reserved block is drawn and
//                          none is free, the least recently used leaf is evicted, and pinned
//                          prefixes after all others (pinned_prefixes.h).
//
// A block has one writer, the sequence that drew it, and only until the block enters the index: it
// is full then and is not written again. Any number of sequences may read it.
//
// Without sharing nothing enters the index, and this is a BlockPool.
//
// KV group 1, if there is one, has a window: its blocks are attached to the nodes of the index
// (attached_blocks.h). A match ends where a sequence finds all blocks of its window. A recurrent
// model has snapshots of states, attached in the same way. Its match ends at a node with one. Not
// synchronised.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/kv/block_pool.h"
#include "scheduler/kv/attached_blocks.h"
#include "scheduler/kv/pinned_prefixes.h"
#include "scheduler/kv/prefix_index.h"

namespace penstock::scheduler {

// KV group 1; a window of 0 tokens: there is none.
struct WindowGroup {
  std::uint32_t window = 0;
  std::uint32_t blocks = 0;
};

class BlockCache {
 public:
  // `snapshots`: 0 unless the model is recurrent.
  BlockCache(std::uint32_t blocks, std::uint32_t block_size, bool sharing, PinLimits pins = {},
             WindowGroup window = {}, std::uint32_t snapshots = 0);

  const BlockPool& pool() const { return pool_; }
  const PrefixIndex& index() const { return index_; }
  std::uint32_t block_size() const { return index_.block_size(); }
  bool sharing() const { return sharing_; }

  bool Reserve(std::uint32_t count) { return pool_.Reserve(count); }
  void Unreserve(std::uint32_t count) { pool_.Unreserve(count); }
  // Draws a block of a reservation; evicts one if none is free.
  BlockId Draw();

  // Tokens that a row reads in KV group 1; 0 = there is no such group.
  std::uint32_t window_tokens() const { return window_tokens_; }
  // Draws a block of KV group 1 inside a claim.
  BlockId DrawWindow();
  AttachedBlocks& window() { return window_; }
  const AttachedBlocks& window() const { return window_; }

  // Cached blocks that a request of the tenant can read if step `reader` starts it.
  PrefixMatch Match(std::string_view tenant, std::span<const TokenId> tokens, StepId reader) const;
  // Adds a holder to the readable blocks of a match and appends them to `blocks`. The unlocked ones
  // must be available.
  void Hold(const PrefixMatch& match, std::vector<BlockId>& blocks);
  // The same for the blocks of KV group 1, inside a claim. Appends kNoBlock for nodes before the
  // window.
  void HoldWindow(const PrefixMatch& match, std::vector<BlockId>& blocks);
  // `block`, held only by the caller, has these tokens after `step`. `before`: the blocks before
  // it, all in the index and held by the caller. Returns the node with these tokens: another one
  // than `block` if it was in the index before. Then `block` stays private.
  std::optional<NodeRef> Enter(std::string_view tenant, std::span<const BlockId> before,
                               BlockId block, std::span<const TokenId> tokens, StepId step);
  // A sequence failed. Invalidates its pinned tails, and its blocks in the index from `block` on
  // (nullopt: it has none there). So no later request uses them.
  void Invalidate(std::optional<BlockId> block, SequenceId failed);

  // A sequence that begins after a match needs the snapshot at its end.
  bool recurrent() const { return snapshots_.pool().total() > 0; }
  // That snapshot, which is not replaced before ReleaseSnapshot; nullopt if none is needed.
  std::optional<BlockId> HoldSnapshot(const PrefixMatch& match);
  // A plan restores it, or the sequence has ended. Later plans may replace it.
  void ReleaseSnapshot(std::optional<BlockId>& snapshot);
  // The snapshot that `writer` saves after `step` for the node; it replaces the least recently used
  // one. Nullopt if the node has one, or if all are held.
  std::optional<BlockId> AddSnapshot(BlockId node, StepId step, SequenceId writer);

  // Pinned prefixes (pinned_prefixes.h).
  void Pin(const PinnedPrefixes::User& user);
  void Forget(std::string_view tenant, std::optional<RequestId> made_by);
  void ForgetAll();
  std::vector<PinChange> TakePinChanges() { return pins_.TakeChanges(); }
  const PinnedPrefixes& pins() const { return pins_; }
  // Keeps the tail of a match until FinishTail, so that the next plan can copy it. Returns false if
  // a reservation may need its block: then it must not be copied.
  bool BeginTail(const PrefixMatch& match);
  // Whether a tail can be copied with `blocks` of KV group 0 and `in_window` of group 1 available.
  // The sequence may release a block of its window before it copies the tail.
  bool HasRoomForTail(std::uint32_t blocks, std::uint32_t in_window) const {
    return blocks > 0 && (window_tokens_ == 0 || in_window >= 2);
  }
  void FinishTail() { pins_.Protect(std::nullopt); }

  // A sequence ends (BlockPool). Its blocks are reclaimed from the last to the first, after
  // BeginReclaim; those in the index stay cached.
  void BeginReclaim(SequenceId sequence) { pins_.BeginReclaim(sequence); }
  void Retire(BlockId block) { pool_.Retire(block); }
  void Reclaim(BlockId block);

 private:
  const bool sharing_;
  BlockPool pool_;
  PrefixIndex index_;
  const std::uint32_t window_tokens_;
  AttachedBlocks window_;
  AttachedBlocks snapshots_;
  PinnedPrefixes pins_;
  std::vector<BlockId> dropped_;  // not in the index any more, still cached in the pool
  mutable std::vector<BlockId> path_;

  std::uint32_t LongestMatch(std::span<const BlockId> path, StepId reader) const;
  void Shorten(PrefixMatch& match, StepId reader) const;
  void Free(BlockId block);
  void FreeDropped();
};

}  // namespace penstock::scheduler
