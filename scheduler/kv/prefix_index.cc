#include "scheduler/kv/prefix_index.h"

#include <algorithm>
#include <bit>

#include "common/check.h"

namespace penstock::scheduler {
namespace {

constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;

// Four independent sums keep the multiplier busy: about 3 bytes a cycle.
class HashSums {
 public:
  explicit HashSums(std::uint64_t seed) {
    for (std::uint64_t& sum : sums_) sum = seed += kOdd;
  }
  void Add(std::size_t index, std::uint64_t value) {
    sums_[index] = std::rotl((sums_[index] ^ value) * 0xd6e8feb86659fd93u, 29);
  }
  std::uint64_t Finish(std::uint64_t length) const {
    std::uint64_t hash = length * kOdd;
    for (const std::uint64_t sum : sums_) {
      hash = (hash ^ sum) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
    return hash;
  }

 private:
  std::uint64_t sums_[4];
};

std::uint64_t Word(TokenId low, TokenId high) {
  return static_cast<std::uint32_t>(low) |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32;
}

std::uint64_t HashName(std::string_view name) {
  HashSums sums(name.size());
  for (std::size_t i = 0; i < name.size(); ++i) {
    sums.Add(i % 4, static_cast<unsigned char>(name[i]));
  }
  return sums.Finish(name.size());
}

}  // namespace

std::uint64_t PrefixIndex::HashTokens(std::uint64_t before, std::span<const TokenId> tokens) {
  HashSums sums(before);
  std::size_t i = 0;
  for (; i + 8 <= tokens.size(); i += 8) {
    for (std::size_t sum = 0; sum < 4; ++sum) {
      sums.Add(sum, Word(tokens[i + 2 * sum], tokens[i + 2 * sum + 1]));
    }
  }
  for (; i < tokens.size(); ++i) sums.Add(i % 4, Word(tokens[i], 0));
  return sums.Finish(tokens.size());
}

PrefixIndex::PrefixIndex(std::uint32_t capacity, std::uint32_t block_size, Hash hash)
    : block_size_(block_size),
      hash_(hash),
      nodes_(capacity),
      tokens_(std::size_t{capacity} * block_size),
      table_(std::bit_ceil(std::size_t{capacity} * 2 + 1), kNone) {}

std::span<const TokenId> PrefixIndex::TokensOf(std::uint32_t node) const {
  return std::span(tokens_).subspan(std::size_t{node} * block_size_, block_size_);
}

std::uint32_t PrefixIndex::Find(std::uint64_t hash, std::uint32_t root, std::uint32_t parent,
                                std::span<const TokenId> tokens) const {
  for (std::size_t i = HomeOf(hash); table_[i] != kNone; i = (i + 1) & (table_.size() - 1)) {
    const Node& node = nodes_[table_[i]];
    if (node.hash != hash || node.root != root || node.parent != parent) continue;
    if (std::ranges::equal(TokensOf(table_[i]), tokens)) return table_[i];
  }
  return kNone;
}

PrefixMatch PrefixIndex::Lookup(std::string_view tenant, std::span<const TokenId> tokens,
                                StepId reader) const {
  PrefixMatch match;
  const auto root = roots_.find(tenant);
  if (root == roots_.end()) return match;
  std::uint64_t hash = root->second.hash;
  std::uint32_t parent = kNone;
  for (; tokens.size() >= block_size_; tokens = tokens.subspan(block_size_)) {
    const auto block = tokens.first(block_size_);
    hash = hash_(hash, block);
    parent = Find(hash, root->second.id, parent, block);
    if (parent == kNone || nodes_[parent].invalid) break;
    match.last_any = BlockId(parent);
    if (match.planned > 0 || nodes_[parent].step >= reader) {
      ++match.planned;
      continue;
    }
    ++match.blocks;
    match.unlocked += nodes_[parent].locks == 0 ? 1 : 0;
    match.last = BlockId(parent);
  }
  return match;
}

void PrefixIndex::AppendPath(BlockId last, std::vector<BlockId>& path) const {
  const auto first = static_cast<std::ptrdiff_t>(path.size());
  for (std::uint32_t node = last.value(); node != kNone; node = nodes_[node].parent) {
    path.push_back(BlockId(node));
  }
  std::reverse(path.begin() + first, path.end());
}

std::optional<BlockId> PrefixIndex::Insert(std::string_view tenant, std::optional<BlockId> parent,
                                           std::span<const TokenId> tokens, BlockId block,
                                           StepId step) {
  PENSTOCK_CHECK(tokens.size() == block_size_, "only full blocks are shared");
  Root& root = RootOf(tenant);
  const std::uint32_t before = parent ? parent->value() : kNone;
  PENSTOCK_CHECK(!parent || nodes_[before].root == root.id,
                 "a node and its parent have one tenant");
  if (parent && nodes_[before].invalid) return parent;
  const std::uint64_t hash = hash_(parent ? nodes_[before].hash : root.hash, tokens);
  const std::uint32_t found = Find(hash, root.id, before, tokens);
  if (found != kNone) return BlockId(found);

  Node& node = nodes_[block.value()];
  PENSTOCK_CHECK(!node.present, "a block holds one run of tokens");
  node = Node{};
  node.hash = hash;
  node.number = ++inserted_;
  node.step = step;
  node.parent = before;
  node.root = root.id;
  node.locks = 1;
  node.present = true;
  std::ranges::copy(tokens, tokens_.begin() + std::ptrdiff_t{block.value()} * block_size_);
  ++root.children;
  if (parent) ++nodes_[before].children;
  AddToTable(block.value());
  ++size_;
  return std::nullopt;
}

std::optional<NodeRef> PrefixIndex::After(NodeRef before, std::span<const TokenId> tokens) const {
  const Node& node = nodes_[before.block.value()];
  if (!node.present || node.invalid || node.number != before.number) return std::nullopt;
  const std::uint32_t next =
      Find(hash_(node.hash, tokens), node.root, before.block.value(), tokens);
  if (next == kNone || nodes_[next].invalid) return std::nullopt;
  return RefTo(BlockId(next));
}

PrefixIndex::Root& PrefixIndex::RootOf(std::string_view tenant) {
  if (const auto it = roots_.find(tenant); it != roots_.end()) return it->second;
  const auto it = roots_.emplace(tenant, Root{}).first;
  it->second.hash = HashName(tenant);
  if (free_roots_.empty()) {
    it->second.id = static_cast<std::uint32_t>(root_by_id_.size());
    root_by_id_.push_back(it);
  } else {
    it->second.id = free_roots_.back();
    free_roots_.pop_back();
    root_by_id_[it->second.id] = it;
  }
  return it->second;
}

void PrefixIndex::Lock(BlockId block) {
  Node& node = nodes_[block.value()];
  PENSTOCK_CHECK(node.present, "a block of the index is locked");
  if (node.locks++ == 0 && node.pins == 0) Unlink(block.value());
}

bool PrefixIndex::Unlock(BlockId block) {
  Node& node = nodes_[block.value()];
  PENSTOCK_CHECK(node.present && node.locks > 0, "a locked block is unlocked");
  if (--node.locks > 0 || node.pins > 0) return true;
  if (node.invalid) {
    Remove(block.value());
    return false;
  }
  Append(block.value());
  return true;
}

void PrefixIndex::Pin(BlockId last) {
  for (std::uint32_t id = last.value(); id != kNone; id = nodes_[id].parent) {
    PENSTOCK_CHECK(nodes_[id].present, "a block of the index is pinned");
    if (nodes_[id].pins++ == 0 && nodes_[id].locks == 0) Unlink(id);
  }
}

void PrefixIndex::Unpin(BlockId last, std::vector<BlockId>& dropped) {
  for (std::uint32_t id = last.value(); id != kNone;) {
    Node& node = nodes_[id];
    const std::uint32_t parent = node.parent;
    PENSTOCK_CHECK(node.present && node.pins > 0, "a pinned block is unpinned");
    if (--node.pins == 0 && node.locks == 0) {
      if (node.invalid) {
        Remove(id);
        dropped.push_back(BlockId(id));
      } else {
        Append(id);
      }
    }
    id = parent;
  }
}

std::optional<BlockId> PrefixIndex::Evict() {
  if (oldest_ == kNone) return std::nullopt;
  const std::uint32_t node = oldest_;
  Unlink(node);
  Remove(node);
  ++evictions_;
  return BlockId(node);
}

void PrefixIndex::Invalidate(BlockId block, std::vector<BlockId>& dropped) {
  // The list has children before parents, so every node that is removed is a leaf by then.
  for (std::uint32_t node = oldest_; node != kNone;) {
    const std::uint32_t newer = nodes_[node].newer;
    if (IsAtOrAfter(node, block.value())) {
      Unlink(node);
      Remove(node);
      dropped.push_back(BlockId(node));
    }
    node = newer;
  }
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].present && IsAtOrAfter(node, block.value())) nodes_[node].invalid = true;
  }
}

bool PrefixIndex::IsAtOrAfter(std::uint32_t node, std::uint32_t first) const {
  while (node != first && node != kNone) node = nodes_[node].parent;
  return node == first;
}

void PrefixIndex::AddToTable(std::uint32_t node) {
  std::size_t i = HomeOf(nodes_[node].hash);
  while (table_[i] != kNone) i = (i + 1) & (table_.size() - 1);
  table_[i] = node;
}

// Entries that were probed past the hole move up (Knuth, 6.4, algorithm R), so there are no
// tombstones.
void PrefixIndex::EraseFromTable(std::uint32_t node) {
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = HomeOf(nodes_[node].hash);
  while (table_[hole] != node) hole = (hole + 1) & mask;
  for (std::size_t i = (hole + 1) & mask; table_[i] != kNone; i = (i + 1) & mask) {
    const std::size_t home = HomeOf(nodes_[table_[i]].hash);
    if (((i - home) & mask) < ((i - hole) & mask)) continue;  // its home lies after the hole
    table_[hole] = table_[i];
    hole = i;
  }
  table_[hole] = kNone;
}

void PrefixIndex::Remove(std::uint32_t id) {
  Node& node = nodes_[id];
  PENSTOCK_CHECK(node.children == 0, "only leaves are removed");
  EraseFromTable(id);
  if (node.parent != kNone) --nodes_[node.parent].children;
  const auto root = root_by_id_[node.root];
  if (--root->second.children == 0) {
    free_roots_.push_back(node.root);
    roots_.erase(root);
  }
  node.present = false;
  --size_;
}

void PrefixIndex::Append(std::uint32_t id) {
  nodes_[id].older = newest_;
  nodes_[id].newer = kNone;
  (newest_ == kNone ? oldest_ : nodes_[newest_].newer) = id;
  newest_ = id;
  ++unlocked_;
}

void PrefixIndex::Unlink(std::uint32_t id) {
  const Node& node = nodes_[id];
  (node.older == kNone ? oldest_ : nodes_[node.older].newer) = node.newer;
  (node.newer == kNone ? newest_ : nodes_[node.newer].older) = node.older;
  --unlocked_;
}

}  // namespace penstock::scheduler
