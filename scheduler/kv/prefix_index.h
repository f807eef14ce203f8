// Which KV blocks hold which tokens: a radix tree over full blocks, so that a request whose prompt
// begins as an earlier one's did can read those blocks instead of computing them again
// (RadixAttention, SGLang, NeurIPS 2024; here with one node per block, found by hash).
//
// A node is one full block: its tokens, its parent (the block before it) and its salt (the tenant:
// nobody finds another tenant's blocks). Nodes are found by the hash of everything from the first
// token on, and then compared token by token: equal hashes never suffice.
//
//   locked    somebody reads or writes the block. Who locks a node holds locks on all its
//             ancestors, so below an unlocked node nothing is locked.
//   unlocked  kept for a later match, until Evict takes it. All unlocked nodes stand in one list in
//             the order in which they were last unlocked, children before parents; so its head is
//             always a leaf, and eviction is exactly least recently used, leaf first, in O(1).
//   pinned    not evicted although nobody locks it, nor are its ancestors (pinned_prefixes.h).
//
// Since plans run in order, a block is readable by every plan after the one that computes it, long
// before that has run: each node carries the step that computes it, and Lookup is asked on behalf
// of a step.
//
// Costs: well under a microsecond per block operation, no allocation after construction except for
// tenants not seen lately. A node is named by its block, which must be below `capacity`.
// Deterministic. Not synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"

namespace penstock::scheduler {

// Leading full blocks of a prompt that are in the index.
struct PrefixMatch {
  std::uint32_t blocks = 0;         // readable by the asking step
  std::uint32_t unlocked = 0;       // of these the last so many are unlocked
  std::uint32_t planned = 0;        // further ones, computed by the asking step or a later one
  std::optional<BlockId> last;      // the last readable one
  std::optional<BlockId> last_any;  // the last one, readable or not
  // Behind those blocks: leading tokens of a further block, which must be copied to be gone on
  // with.
  std::optional<BlockId> tail;
  std::uint32_t tail_tokens = 0;
};

class PrefixIndex {
 public:
  // Of a block's tokens and the hash of everything before them.
  using Hash = std::uint64_t (*)(std::uint64_t before, std::span<const TokenId> tokens);
  static std::uint64_t HashTokens(std::uint64_t before, std::span<const TokenId> tokens);

  PrefixIndex(std::uint32_t capacity, std::uint32_t block_size, Hash hash = &HashTokens);

  // The longest chain of full blocks that `tokens` begin with. Changes nothing.
  PrefixMatch Lookup(std::string_view tenant, std::span<const TokenId> tokens, StepId reader) const;

  // Blocks from the first token's to `last`, in order of position; appended to `path`.
  void AppendPath(BlockId last, std::vector<BlockId>& path) const;

  // Makes `block`, which `step` fills with `tokens` (block_size of them), a node after `parent`
  // (none: it holds the first tokens of a prompt). The new node has one lock, the caller's. When
  // the tokens stand there already, or the parent is spoilt, nothing changes and the block that is
  // in the way is returned.
  std::optional<BlockId> Insert(std::string_view tenant, std::optional<BlockId> parent,
                                std::span<const TokenId> tokens, BlockId block, StepId step);

  // From the first block to the last. The caller locks every ancestor, too.
  void Lock(BlockId block);
  // From the last block to the first. False when the node is gone with its last lock, because it
  // was spoilt; otherwise the block stays cached once nobody locks it.
  bool Unlock(BlockId block);

  // A pinned node and its ancestors are not evicted until Unpin; spoilt ones that nobody locks are
  // taken out then and appended to `gone`.
  void Pin(BlockId last);
  void Unpin(BlockId last, std::vector<BlockId>& gone);

  // Takes out the least recently used unlocked leaf and returns its block.
  std::optional<BlockId> Evict();

  // What stands in this block, and in those after it, is not to be relied on (its sequence failed):
  // they are found no more. Unlocked ones are taken out at once and appended to `gone`; locked ones
  // go with their last lock. Slow, for what should not happen: looks at every node.
  void Spoil(BlockId block, std::vector<BlockId>& gone);

  bool Contains(BlockId block) const { return nodes_[block.value()].present; }
  bool IsSpoilt(BlockId block) const { return nodes_[block.value()].spoilt; }
  std::uint32_t size() const { return size_; }
  // Neither locked nor pinned.
  std::uint32_t unlocked() const { return unlocked_; }
  std::uint64_t evictions() const { return evictions_; }
  std::uint32_t block_size() const { return block_size_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Node {
    std::uint64_t hash = 0;
    StepId step;
    std::uint32_t parent = kNone;
    std::uint32_t root = kNone;  // of the tenant
    std::uint32_t children = 0;
    std::uint32_t locks = 0;
    std::uint32_t pins = 0;
    std::uint32_t older = kNone;  // neighbours in the list of unlocked nodes
    std::uint32_t newer = kNone;
    bool present = false;
    bool spoilt = false;
  };
  // Where the tree of a tenant begins.
  struct Root {
    std::uint64_t hash = 0;
    std::uint32_t id = 0;
    std::uint32_t children = 0;
  };

  std::span<const TokenId> TokensOf(std::uint32_t node) const;
  // The child of `parent` with these tokens; kNone when there is none.
  std::uint32_t Find(std::uint64_t hash, std::uint32_t root, std::uint32_t parent,
                     std::span<const TokenId> tokens) const;
  Root& RootOf(std::string_view tenant);
  std::size_t HomeOf(std::uint64_t hash) const { return hash & (table_.size() - 1); }
  void AddToTable(std::uint32_t node);
  void EraseFromTable(std::uint32_t node);
  bool IsAtOrAfter(std::uint32_t node, std::uint32_t first) const;
  void Remove(std::uint32_t node);
  void Append(std::uint32_t node);  // to the list, as the newest
  void Unlink(std::uint32_t node);

  const std::uint32_t block_size_;
  const Hash hash_;
  std::vector<Node> nodes_;           // by block
  std::vector<TokenId> tokens_;       // [blocks][block_size]
  std::vector<std::uint32_t> table_;  // open addressing, linear probing; kNone = empty
  std::map<std::string, Root, std::less<>> roots_;
  std::vector<std::map<std::string, Root, std::less<>>::iterator> root_by_id_;
  std::vector<std::uint32_t> free_roots_;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::uint32_t size_ = 0;
  std::uint32_t unlocked_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace penstock::scheduler
