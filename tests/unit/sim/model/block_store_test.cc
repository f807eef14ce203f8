#include "sim/model/block_store.h"

#include <gtest/gtest.h>

namespace penstock::sim {
namespace {

// Blocks of two tokens.
class BlockStoreTest : public ::testing::Test {
 protected:
  static GroupCapacity Capacity() {
    GroupCapacity capacity;
    capacity.blocks = 4;
    capacity.block_size = 2;
    return capacity;
  }
  // A sequence computes the prompt and ends. Returns its blocks.
  std::vector<StoreBlock> Run(const std::vector<TokenId>& prompt) {
    std::vector<StoreBlock> blocks;
    const auto histories = HistoriesOf("", prompt);
    for (std::size_t end = 2; end <= prompt.size(); end += 2) {
      const auto before = blocks.empty() ? std::nullopt : std::optional(blocks.back());
      blocks.push_back(store_.Draw());
      store_.Enter(blocks.back(), before, histories[end - 1], StepId(1));
    }
    for (auto it = blocks.rbegin(); it != blocks.rend(); ++it) {
      store_.Retire(*it);
      store_.Reclaim(*it);
    }
    return blocks;
  }
  std::size_t Found(const std::vector<TokenId>& prompt) const {
    return store_.Find("", prompt, StepId(2)).blocks.size();
  }

  BlockStore store_{scheduler::Config{}, Capacity()};
};

TEST_F(BlockStoreTest, EvictsTheEndOfTheOldestFirst) {
  Run({1, 2, 3, 4});
  Run({5, 6, 7, 8});
  store_.Draw();
  EXPECT_EQ(Found({1, 2, 3, 4}), 1u);
  store_.Draw();
  EXPECT_EQ(Found({1, 2, 3, 4}), 0u);
  EXPECT_EQ(Found({5, 6, 7, 8}), 2u);
  EXPECT_EQ(store_.TakeEvictions(), 2u);
}

TEST_F(BlockStoreTest, APinnedPrefixGoesLast) {
  const std::vector<TokenId> pinned{1, 2};
  const auto blocks = Run(pinned);
  Run({5, 6});
  store_.Pin(RequestId(1), SequenceId(1), "", pinned, blocks, {}, StepId(1));
  for (int i = 0; i < 3; ++i) store_.Draw();
  EXPECT_EQ(Found(pinned), 1u);
  store_.Draw();
  EXPECT_EQ(Found(pinned), 0u);
  EXPECT_EQ(store_.TakePinChanges().size(), 2u) << "kept and dropped";
}

TEST_F(BlockStoreTest, ANodeThatEntersAgainIsAnotherOne) {
  const std::vector<TokenId> prompt{1, 2};
  Run(prompt);
  const History history = HistoriesOf("", prompt).back();
  const auto node = store_.NodeWith(history);
  ASSERT_TRUE(node);
  EXPECT_TRUE(store_.Has(*node));
  for (int i = 0; i < 4; ++i) store_.Draw();
  EXPECT_FALSE(store_.Has(*node));
  EXPECT_FALSE(store_.NodeWith(history));
}

TEST_F(BlockStoreTest, WhatFollowsAFailedBlockIsNotFound) {
  const auto blocks = Run({1, 2, 3, 4});
  Run({1, 2, 5, 6});
  store_.Invalidate(blocks[1], SequenceId(1));
  EXPECT_EQ(Found({1, 2, 3, 4}), 1u);
}

TEST_F(BlockStoreTest, AStepReadsWhatEarlierStepsCompute) {
  Run({1, 2});
  EXPECT_EQ(store_.Find("", std::vector<TokenId>{1, 2}, StepId(1)).planned.size(), 1u);
  EXPECT_EQ(store_.Find("other", std::vector<TokenId>{1, 2}, StepId(2)).blocks.size(), 0u);
}

}  // namespace
}  // namespace penstock::sim
