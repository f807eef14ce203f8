#include "scheduler/kv/prefix_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;

constexpr StepId kLater(1000);

// A chain of blocks of two tokens each, held by one sequence.
std::vector<BlockId> Fill(PrefixIndex& index, const std::vector<TokenId>& tokens,
                          std::uint32_t first_block, std::string_view tenant = "") {
  std::vector<BlockId> path;
  for (std::size_t i = 0; i + 2 <= tokens.size(); i += 2) {
    const BlockId block(first_block + static_cast<std::uint32_t>(i / 2));
    const auto parent = path.empty() ? std::nullopt : std::optional(path.back());
    const auto found =
        index.Insert(tenant, parent, std::span(tokens).subspan(i, 2), block, StepId(1 + i / 2));
    if (found) index.Lock(*found);
    path.push_back(found.value_or(block));
  }
  return path;
}

void Release(PrefixIndex& index, const std::vector<BlockId>& path) {
  for (auto it = path.rbegin(); it != path.rend(); ++it) EXPECT_TRUE(index.Unlock(*it));
}

PrefixMatch Find(const PrefixIndex& index, const std::vector<TokenId>& tokens,
                 std::string_view tenant = "", StepId reader = kLater) {
  return index.Lookup(tenant, tokens, reader);
}

TEST(PrefixIndex, FindsWholeBlocksOfAPrefixOnly) {
  PrefixIndex index(8, 2);
  Fill(index, {1, 2, 3, 4, 5, 6}, 0);
  const PrefixMatch match = Find(index, {1, 2, 3, 4, 9, 6});
  EXPECT_EQ(match.blocks, 2u);
  EXPECT_EQ(match.last, BlockId(1));
  std::vector<BlockId> path;
  index.AppendPath(*match.last, path);
  EXPECT_THAT(path, ElementsAre(BlockId(0), BlockId(1)));
  EXPECT_EQ(Find(index, {1, 2, 3}).blocks, 1u) << "half a block is none";
  EXPECT_EQ(Find(index, {3, 4}).blocks, 0u) << "the same tokens elsewhere are another block";
}

TEST(PrefixIndex, ATenantFindsItsOwnBlocksOnly) {
  PrefixIndex index(8, 2);
  Fill(index, {1, 2}, 0, "a");
  EXPECT_EQ(Find(index, {1, 2}, "a").blocks, 1u);
  EXPECT_EQ(Find(index, {1, 2}, "b").blocks, 0u);
  EXPECT_EQ(Find(index, {1, 2}).blocks, 0u);
  Fill(index, {1, 2}, 1, "b");
  EXPECT_EQ(Find(index, {1, 2}, "b").last, BlockId(1));
}

TEST(PrefixIndex, ABlockIsReadableAfterTheStepThatComputesIt) {
  PrefixIndex index(8, 2);
  Fill(index, {1, 2, 3, 4, 5, 6}, 0);  // by steps 1, 2, 3
  const PrefixMatch match = Find(index, {1, 2, 3, 4, 5, 6}, "", StepId(2));
  EXPECT_EQ(match.blocks, 1u);
  EXPECT_EQ(match.planned, 2u);
  EXPECT_EQ(match.last, BlockId(0));
  EXPECT_EQ(match.last_any, BlockId(2));
}

TEST(PrefixIndex, EvictsTheLeastRecentlyUsedLeafAndNeverALockedBlock) {
  PrefixIndex index(8, 2);
  const auto first = Fill(index, {1, 2, 3, 4}, 0);
  const auto second = Fill(index, {1, 2, 5, 6}, 4);
  ASSERT_THAT(second, ElementsAre(BlockId(0), BlockId(5)));
  EXPECT_EQ(index.Evict(), std::nullopt);
  Release(index, first);
  EXPECT_EQ(index.unlocked(), 1u);
  EXPECT_EQ(index.Evict(), BlockId(1));
  EXPECT_EQ(index.Evict(), std::nullopt) << "the shared block is still locked";
  Release(index, second);
  EXPECT_EQ(index.Evict(), BlockId(5)) << "leaves first";
  EXPECT_EQ(index.Evict(), BlockId(0));
  EXPECT_EQ(index.size(), 0u);
}

TEST(PrefixIndex, APinnedPrefixStaysUntilItIsUnpinned) {
  PrefixIndex index(8, 2);
  const auto path = Fill(index, {1, 2, 3, 4}, 0);
  index.Pin(BlockId(0));
  Release(index, path);
  EXPECT_EQ(index.Evict(), BlockId(1));
  EXPECT_EQ(index.Evict(), std::nullopt);
  std::vector<BlockId> gone;
  index.Unpin(BlockId(0), gone);
  EXPECT_TRUE(gone.empty());
  EXPECT_EQ(index.Evict(), BlockId(0));
}

TEST(PrefixIndex, AnInvalidPinnedBlockIsRemovedWhenItIsUnpinned) {
  PrefixIndex index(8, 2);
  const auto path = Fill(index, {1, 2, 3, 4}, 0);
  index.Pin(BlockId(1));
  Release(index, path);
  std::vector<BlockId> gone;
  index.Invalidate(BlockId(1), gone);
  EXPECT_TRUE(gone.empty());
  EXPECT_EQ(Find(index, {1, 2, 3, 4}).blocks, 1u);
  index.Unpin(BlockId(1), gone);
  EXPECT_THAT(gone, ::testing::ElementsAre(BlockId(1)));
  EXPECT_EQ(index.Evict(), BlockId(0));
}

TEST(PrefixIndex, AnInvalidBlockIsNeverFoundAgain) {
  PrefixIndex index(8, 2);
  const auto path = Fill(index, {1, 2, 3, 4}, 0);
  std::vector<BlockId> gone;
  index.Invalidate(BlockId(1), gone);
  EXPECT_TRUE(gone.empty());
  EXPECT_EQ(Find(index, {1, 2, 3, 4}).blocks, 1u);
  EXPECT_TRUE(index.Insert("", BlockId(1), std::vector<TokenId>{5, 6}, BlockId(3), StepId(9)));
  EXPECT_FALSE(index.Unlock(BlockId(1))) << "its block is free at once";
  EXPECT_TRUE(index.Unlock(BlockId(0)));
  EXPECT_EQ(index.size(), 1u);
}

// The model: a list of whole prefixes and a linear search.
struct ModelNode {
  std::string tenant;
  std::vector<TokenId> tokens;  // from the first one on
  BlockId block;
  StepId step;
  int locks = 0;
  bool invalid = false;
  std::uint64_t unlocked_at = 0;
  int pins = 0;
};

struct Holder {
  std::string tenant;
  std::vector<BlockId> path;
};

class Model {
 public:
  Model(std::uint64_t seed, PrefixIndex::Hash hash)
      : random_(seed), index_(kBlocks, kBlockSize, hash) {
    for (std::uint32_t i = kBlocks; i > 0; --i) free_.push_back(BlockId(i - 1));
  }

  // Operations that changed something.
  std::uint64_t operations() const { return operations_; }

  void Step() {
    switch (Draw(12)) {
      case 0:
      case 1:
      case 2:
        return LookUp();
      case 3:
      case 4:
      case 5:
        return Extend();
      case 6:
      case 7:
        return Open();
      case 8:
      case 9:
        return End();
      case 10:
        return Draw(2) == 0 ? Unpin() : Pin();
      default:
        return Draw(8) == 0 ? Invalidate() : Evict();
    }
  }

 private:
  static constexpr std::uint32_t kBlocks = 20;
  static constexpr std::uint32_t kBlockSize = 2;

  std::uint32_t Draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  std::string DrawTenant() { return Draw(3) == 0 ? "b" : ""; }
  std::vector<TokenId> DrawTokens(std::uint32_t count) {
    std::vector<TokenId> tokens(count);
    for (TokenId& token : tokens) token = Draw(5) == 0 ? 1 : 0;
    return tokens;
  }

  ModelNode* Of(BlockId block) {
    for (ModelNode& node : nodes_) {
      if (node.block == block) return &node;
    }
    return nullptr;
  }
  ModelNode* Of(const std::string& tenant, std::span<const TokenId> tokens) {
    for (ModelNode& node : nodes_) {
      if (node.tenant == tenant && std::ranges::equal(node.tokens, tokens)) return &node;
    }
    return nullptr;
  }
  bool HasChild(const ModelNode& parent) const {
    return std::ranges::any_of(nodes_, [&parent](const ModelNode& node) {
      return node.tokens.size() == parent.tokens.size() + kBlockSize &&
             node.tenant == parent.tenant &&
             std::equal(parent.tokens.begin(), parent.tokens.end(), node.tokens.begin());
    });
  }
  void Unlock(BlockId block) {
    ++operations_;
    ModelNode* node = Of(block);
    ASSERT_NE(node, nullptr);
    const bool kept = --node->locks > 0 || node->pins > 0 || !node->invalid;
    node->unlocked_at = ++clock_;
    if (!kept) Forget(block);
    ASSERT_EQ(index_.Unlock(block), kept);
  }
  void Forget(BlockId block) {
    std::erase_if(nodes_, [block](const ModelNode& node) { return node.block == block; });
    free_.push_back(block);
  }

  PrefixMatch Expected(const std::string& tenant, std::span<const TokenId> tokens, StepId reader) {
    PrefixMatch match;
    for (std::size_t end = kBlockSize; end <= tokens.size(); end += kBlockSize) {
      const ModelNode* node = Of(tenant, tokens.first(end));
      if (node == nullptr || node->invalid) break;
      match.last_any = node->block;
      if (match.planned > 0 || node->step >= reader) {
        ++match.planned;
        continue;
      }
      ++match.blocks;
      match.unlocked += node->locks == 0 ? 1 : 0;
      match.last = node->block;
    }
    return match;
  }

  void LookUp() {
    const std::string tenant = DrawTenant();
    const std::vector<TokenId> tokens = DrawTokens(Draw(13));
    const StepId reader(Draw(40));
    ++operations_;
    const PrefixMatch expected = Expected(tenant, tokens, reader);
    const PrefixMatch match = index_.Lookup(tenant, tokens, reader);
    ASSERT_EQ(match.blocks, expected.blocks);
    ASSERT_EQ(match.unlocked, expected.unlocked);
    ASSERT_EQ(match.planned, expected.planned);
    ASSERT_EQ(match.last, expected.last);
    ASSERT_EQ(match.last_any, expected.last_any);
  }

  void Open() {
    if (holders_.size() >= 4) return;
    Holder holder{DrawTenant(), {}};
    ++operations_;
    const auto match = index_.Lookup(holder.tenant, DrawTokens(12), kLater);
    if (match.last) index_.AppendPath(*match.last, holder.path);
    for (const BlockId block : holder.path) {
      index_.Lock(block);
      ++Of(block)->locks;
    }
    holders_.push_back(holder);
  }

  void Extend() {
    if (holders_.empty() || free_.empty()) return;
    Holder& holder = holders_[Draw(static_cast<std::uint32_t>(holders_.size()))];
    std::vector<TokenId> tokens;
    std::optional<BlockId> parent;
    if (!holder.path.empty()) {
      parent = holder.path.back();
      if (Of(*parent)->invalid || holder.path.size() >= 6) return;
      tokens = Of(*parent)->tokens;
    }
    const std::vector<TokenId> more = DrawTokens(kBlockSize);
    tokens.insert(tokens.end(), more.begin(), more.end());
    ModelNode* there = Of(holder.tenant, tokens);
    const BlockId block = free_.back();
    const StepId step(Draw(40));
    ++operations_;
    const auto found = index_.Insert(holder.tenant, parent, more, block, step);
    ASSERT_EQ(found.has_value(), there != nullptr);
    if (there != nullptr) {
      ASSERT_EQ(*found, there->block);
      return;
    }
    free_.pop_back();
    nodes_.push_back({holder.tenant, tokens, block, step, 1, false, 0});
    holder.path.push_back(block);
  }

  void End() {
    if (holders_.empty()) return;
    const std::size_t which = Draw(static_cast<std::uint32_t>(holders_.size()));
    const Holder holder = holders_[which];
    holders_.erase(holders_.begin() + static_cast<std::ptrdiff_t>(which));
    for (auto it = holder.path.rbegin(); it != holder.path.rend(); ++it) Unlock(*it);
  }

  void Evict() {
    const ModelNode* victim = nullptr;
    for (const ModelNode& node : nodes_) {
      if (node.locks > 0 || node.pins > 0 || HasChild(node)) continue;
      if (victim == nullptr || node.unlocked_at < victim->unlocked_at) victim = &node;
    }
    const auto evicted = index_.Evict();
    ASSERT_EQ(evicted.has_value(), victim != nullptr);
    if (victim == nullptr) return;
    ASSERT_EQ(*evicted, victim->block);
    ++operations_;
    Forget(*evicted);
  }

  void Pin() {
    if (pins_.size() >= 3 || nodes_.empty()) return;
    const ModelNode& node = nodes_[Draw(static_cast<std::uint32_t>(nodes_.size()))];
    if (node.invalid) return;
    Holder pin{node.tenant, {}};
    index_.AppendPath(node.block, pin.path);
    index_.Pin(node.block);
    for (const BlockId block : pin.path) ++Of(block)->pins;
    pins_.push_back(pin);
  }

  void Unpin() {
    if (pins_.empty()) return;
    const std::size_t which = Draw(static_cast<std::uint32_t>(pins_.size()));
    const Holder pin = pins_[which];
    pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(which));
    std::vector<BlockId> expected;
    for (auto it = pin.path.rbegin(); it != pin.path.rend(); ++it) {
      ModelNode* node = Of(*it);
      if (--node->pins > 0 || node->locks > 0) continue;
      node->unlocked_at = ++clock_;
      if (node->invalid) expected.push_back(*it);
    }
    std::vector<BlockId> gone;
    index_.Unpin(pin.path.back(), gone);
    ASSERT_EQ(gone, expected);
    for (const BlockId block : gone) Forget(block);
  }

  void Invalidate() {
    if (holders_.empty()) return;
    const Holder& holder = holders_[Draw(static_cast<std::uint32_t>(holders_.size()))];
    if (holder.path.empty()) return;
    const std::size_t depth = Draw(static_cast<std::uint32_t>(holder.path.size()));
    const std::vector<TokenId> invalid = Of(holder.path[depth])->tokens;
    std::vector<BlockId> gone;
    index_.Invalidate(holder.path[depth], gone);
    std::vector<BlockId> expected;
    for (ModelNode& node : nodes_) {
      const bool below = node.tenant == holder.tenant && node.tokens.size() >= invalid.size() &&
                         std::equal(invalid.begin(), invalid.end(), node.tokens.begin());
      if (below && node.locks == 0 && node.pins == 0) expected.push_back(node.block);
      if (below) node.invalid = true;
    }
    ASSERT_THAT(gone, ::testing::UnorderedElementsAreArray(expected));
    for (const BlockId block : gone) Forget(block);
    ++operations_;
  }

  std::mt19937_64 random_;
  PrefixIndex index_;
  std::vector<ModelNode> nodes_;
  std::vector<BlockId> free_;
  std::vector<Holder> holders_;
  std::vector<Holder> pins_;
  std::uint64_t clock_ = 0;
  std::uint64_t operations_ = 0;
};

std::uint64_t WeakHash(std::uint64_t before, std::span<const TokenId> tokens) {
  return (before + static_cast<std::uint64_t>(tokens[0])) & 3;
}

std::uint64_t NoHash(std::uint64_t, std::span<const TokenId>) { return 7; }

TEST(PrefixIndex, EqualsABruteForceModelOverAMillionRandomOperations) {
  const PrefixIndex::Hash hashes[] = {&PrefixIndex::HashTokens, &WeakHash, &NoHash};
  std::uint64_t operations = 0;
  for (std::uint64_t seed = 1; operations < 1'000'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model model(seed, hashes[seed % 3]);
    while (model.operations() < 10'000) {
      model.Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    operations += model.operations();
  }
}

TEST(PrefixIndex, TheHashDependsOnEveryTokenAndItsPosition) {
  std::set<std::uint64_t> seen;
  for (const std::size_t length : {1u, 7u, 8u, 16u, 19u}) {
    std::vector<TokenId> tokens(length, 5);
    EXPECT_TRUE(seen.insert(PrefixIndex::HashTokens(1, tokens)).second);
    EXPECT_TRUE(seen.insert(PrefixIndex::HashTokens(2, tokens)).second);
    for (TokenId& token : tokens) {
      token = 6;
      EXPECT_TRUE(seen.insert(PrefixIndex::HashTokens(1, tokens)).second);
      token = 5;
    }
  }
}

}  // namespace
}  // namespace penstock::scheduler
