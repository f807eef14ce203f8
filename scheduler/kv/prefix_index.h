// Which KV blocks hold which tokens: a radix tree over full blocks. A request whose prompt begins
// like an earlier one reads those blocks instead of computing them again (RadixAttention, SGLang,
// NeurIPS 2024; here each node is one block and is found by hash).
//
// A node is one full block: its tokens, its parent (the block before it) and its tenant. A tenant
// never finds blocks of another one. Nodes are found by the hash of all tokens from the first one
// on and then compared token by token, so equal hashes never suffice.
//
//   locked    a sequence reads or writes the block. It also locks all ancestors, so no node below
//             an unlocked one is locked.
//   unlocked  kept for a later match until it is evicted. Unlocked nodes form a list in the order
//             in which they were unlocked, children before parents. Its head is always a leaf, so
//             eviction takes the least recently used leaf in O(1).
//   pinned    not evicted while unlocked, and neither are its ancestors (pinned_prefixes.h)
//   invalid   its sequence failed. It is never found again and is removed with its last lock.
//
// Plans run in order, so every plan after the one that computes a block can read it, even before
// that plan has run. Each node has the step that computes it, and Lookup takes the reading step.
//
// A block operation takes well under a microsecond. Only new tenants allocate. A node has the
// number of its block, which must be below `capacity`. Deterministic. Not synchronised.
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
  std::uint32_t blocks = 0;         // that the reading step can read
  std::uint32_t unlocked = 0;       // of these, the unlocked ones: the last ones
  std::uint32_t planned = 0;        // further ones, computed by the reading step or later
  std::optional<BlockId> last;      // the last readable one
  std::optional<BlockId> last_any;  // the last one, readable or not
  // The next block has these leading tokens. It must be copied before a sequence writes to it.
  std::optional<BlockId> tail;
  std::uint32_t tail_tokens = 0;
  // All blocks with the tokens, whether or not a sequence can begin after them.
  std::uint32_t found = 0;
};

// A node as it is now. Its block may become another node later, with another number.
struct NodeRef {
  BlockId block;
  std::uint64_t number = 0;
};

class PrefixIndex {
 public:
  // Hashes the tokens of a block and the hash of everything before them.
  using Hash = std::uint64_t (*)(std::uint64_t before, std::span<const TokenId> tokens);
  static std::uint64_t HashTokens(std::uint64_t before, std::span<const TokenId> tokens);

  PrefixIndex(std::uint32_t capacity, std::uint32_t block_size, Hash hash = &HashTokens);

  // The longest chain of full blocks with which `tokens` begin.
  PrefixMatch Lookup(std::string_view tenant, std::span<const TokenId> tokens, StepId reader) const;

  // Appends the blocks from the first one to `last` to `path`, in order of position.
  void AppendPath(BlockId last, std::vector<BlockId>& path) const;

  // Makes `block`, which `step` fills with these block_size tokens, a node after `parent` (none: it
  // begins a prompt). The new node has one lock, the caller's. If another node has the tokens, or
  // the parent is invalid, nothing changes and the block of that node is returned.
  std::optional<BlockId> Insert(std::string_view tenant, std::optional<BlockId> parent,
                                std::span<const TokenId> tokens, BlockId block, StepId step);

  NodeRef RefTo(BlockId block) const { return {block, nodes_[block.value()].number}; }
  // The node after `before` with these tokens; nullopt also when one of them is gone or invalid.
  std::optional<NodeRef> After(NodeRef before, std::span<const TokenId> tokens) const;

  // Adds a lock. The caller locks every ancestor as well, from the first block to the last.
  void Lock(BlockId block);
  // Removes a lock; from the last block to the first. Returns false if the node was invalid and
  // this was its last lock: it is removed. Otherwise an unlocked block stays cached.
  bool Unlock(BlockId block);

  // A pinned node and its ancestors are not evicted until Unpin. Unpin removes invalid nodes
  // without a lock and appends them to `dropped`.
  void Pin(BlockId last);
  void Unpin(BlockId last, std::vector<BlockId>& dropped);

  // Removes the least recently used unlocked leaf and returns its block.
  std::optional<BlockId> Evict();

  // The node and all nodes after it become invalid. Unlocked ones are removed at once and appended
  // to `dropped`. Rare, and slow: it visits every node.
  void Invalidate(BlockId block, std::vector<BlockId>& dropped);

  bool Contains(BlockId block) const { return nodes_[block.value()].present; }
  bool IsInvalid(BlockId block) const { return nodes_[block.value()].invalid; }
  std::uint32_t size() const { return size_; }
  // Neither locked nor pinned.
  std::uint32_t unlocked() const { return unlocked_; }
  std::uint64_t evictions() const { return evictions_; }
  std::uint32_t block_size() const { return block_size_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Node {
    std::uint64_t hash = 0;
    std::uint64_t number = 0;
    StepId step;
    std::uint32_t parent = kNone;
    std::uint32_t root = kNone;  // of the tenant
    std::uint32_t children = 0;
    std::uint32_t locks = 0;
    std::uint32_t pins = 0;
    std::uint32_t older = kNone;  // neighbours in the list of unlocked nodes
    std::uint32_t newer = kNone;
    bool present = false;
    bool invalid = false;
  };
  // The root of a tenant's tree.
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
  void Append(std::uint32_t node);  // to the list of unlocked nodes
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
  std::uint64_t inserted_ = 0;
};

}  // namespace penstock::scheduler
