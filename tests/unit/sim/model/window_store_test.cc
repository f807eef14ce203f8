#include "sim/model/window_store.h"

#include <gtest/gtest.h>

namespace penstock::sim {
namespace {

// Blocks of two tokens. A row reads its own position and the three before it: two nodes.
class WindowStoreTest : public ::testing::Test {
 protected:
  static GroupCapacity Capacity() {
    GroupCapacity capacity;
    capacity.blocks = 8;
    capacity.block_size = 2;
    capacity.window = 4;
    capacity.window_blocks = 3;
    return capacity;
  }
  static bool NotPinned(StoreBlock) { return false; }
  // A sequence draws the blocks of these nodes in step 1.
  WindowEntries Run(const std::vector<StoreBlock>& nodes) {
    WindowEntries entries;
    for (const StoreBlock node : nodes) {
      entries.blocks.push_back(store_.Draw(NotPinned));
      store_.Attach(node, entries.blocks.back(), StepId(1), SequenceId(1));
    }
    return entries;
  }
  void End(WindowEntries& entries) {
    store_.Retire(entries);
    store_.Reclaim(entries);
  }

  WindowStore store_{Capacity()};
};

TEST_F(WindowStoreTest, AMatchNeedsTheBlocksOfItsWindow) {
  WindowEntries entries = Run({0, 1, 2});
  const std::vector<StoreBlock> path{0, 1, 2, 3};
  EXPECT_EQ(store_.LongestMatch(path, StepId(2)), 3u);
  EXPECT_EQ(store_.LongestMatch(path, StepId(1)), 0u) << "step 1 computes them";
  store_.Detach(0);
  EXPECT_EQ(store_.LongestMatch(path, StepId(2)), 3u);
  store_.Detach(1);
  EXPECT_EQ(store_.LongestMatch(path, StepId(2)), 0u);
}

TEST_F(WindowStoreTest, BlocksBeforeTheWindowAreGivenUp) {
  WindowEntries entries = Run({0, 1, 2});
  store_.MoveTo(4, entries);  // reads from position 1 on
  EXPECT_EQ(entries.held(), 3u);
  store_.MoveTo(5, entries);  // reads from position 2 on
  EXPECT_EQ(entries.held(), 2u);
  EXPECT_EQ(store_.cached(), 1u);
}

TEST_F(WindowStoreTest, TheLeastRecentlyUsedBlockIsEvictedUnlessItsNodeIsPinned) {
  WindowEntries entries = Run({0, 1, 2});
  End(entries);
  EXPECT_EQ(store_.cached(), 3u);
  EXPECT_TRUE(store_.Draw([](StoreBlock node) { return node == 2; }));
  EXPECT_TRUE(store_.Of(2)) << "pinned";
  EXPECT_FALSE(store_.Of(1)) << "of the others, a sequence leaves its last block first";
  EXPECT_TRUE(store_.Of(0));
}

TEST_F(WindowStoreTest, BlocksOfEndedSequencesRetireUntilTheyAreReclaimed) {
  WindowEntries entries = Run({0, 1});
  store_.Detach(1);
  store_.Retire(entries);
  EXPECT_EQ(store_.retiring(), 2u);
  EXPECT_EQ(entries.claimed(), 2u);
  store_.Reclaim(entries);
  EXPECT_EQ(store_.retiring(), 0u);
  EXPECT_EQ(store_.cached(), 1u);
  EXPECT_EQ(store_.free(), 2u);
}

TEST_F(WindowStoreTest, ASequenceHoldsOnlyTheWindowOfItsMatch) {
  WindowEntries first = Run({0, 1, 2});
  WindowEntries second;
  store_.Adopt(std::vector<StoreBlock>{0, 1, 2}, second);
  EXPECT_EQ(second.held(), 2u);
  EXPECT_FALSE(second.blocks[0]);
}

}  // namespace
}  // namespace penstock::sim
