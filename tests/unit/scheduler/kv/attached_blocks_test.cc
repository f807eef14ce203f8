#include "scheduler/kv/attached_blocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::scheduler {
namespace {

constexpr StepId kStep{5};
constexpr StepId kNext{6};

// Nodes 0, 1, 2 … of one path. A sequence draws a block for each of the first `count`, attaches it
// and releases it.
class AttachedBlocksTest : public ::testing::Test {
 protected:
  void Fill(AttachedBlocks& blocks, std::uint32_t count) {
    ASSERT_TRUE(blocks.Claim(count));
    std::vector<BlockId> held;
    for (std::uint32_t node = 0; node < count; ++node) {
      held.push_back(blocks.Draw());
      blocks.Attach(BlockId(node), held.back(), kStep, SequenceId(1));
    }
    for (const BlockId block : held) blocks.Release(block);
    blocks.Unclaim(count);
  }

  const std::vector<BlockId> path_ = {BlockId(0), BlockId(1), BlockId(2), BlockId(3)};
};

TEST_F(AttachedBlocksTest, AMatchNeedsTheBlocksOfItsLastNodes) {
  AttachedBlocks blocks(8, 8, 2);
  Fill(blocks, 4);
  EXPECT_EQ(blocks.LongestMatch(path_, kNext), 4u);
  blocks.Detach(BlockId(0));
  EXPECT_EQ(blocks.LongestMatch(path_, kNext), 4u) << "node 0 is before the last two";
  blocks.Detach(BlockId(3));
  EXPECT_EQ(blocks.LongestMatch(path_, kNext), 3u);
  blocks.Detach(BlockId(1));
  EXPECT_EQ(blocks.LongestMatch(path_, kNext), 0u);
}

TEST_F(AttachedBlocksTest, AShortMatchNeedsAllItsBlocks) {
  AttachedBlocks blocks(8, 8, 3);
  Fill(blocks, 2);
  EXPECT_EQ(blocks.LongestMatch(path_, kNext), 2u);
  blocks.Detach(BlockId(0));
  EXPECT_EQ(blocks.LongestMatch(path_, kNext), 0u);
}

TEST_F(AttachedBlocksTest, ABlockIsReadAfterTheStepThatWritesIt) {
  AttachedBlocks blocks(8, 8, 2);
  Fill(blocks, 4);
  EXPECT_EQ(blocks.LongestMatch(path_, kStep), 0u);
}

TEST_F(AttachedBlocksTest, TheLeastRecentlyUsedBlockIsEvicted) {
  AttachedBlocks blocks(4, 8, 1);
  Fill(blocks, 4);
  ASSERT_TRUE(blocks.Claim(3));
  const BlockId first = blocks.Hold(BlockId(0));  // held, so not evicted
  EXPECT_NE(blocks.Draw(), first);
  EXPECT_EQ(blocks.BlockOf(BlockId(1)), kNoBlock) << "released before nodes 2 and 3";
  EXPECT_NE(blocks.BlockOf(BlockId(2)), kNoBlock);
  blocks.Release(first);
  EXPECT_NE(blocks.Draw(), first) << "it was used last";
}

TEST_F(AttachedBlocksTest, ABlockThatIsNotAttachedIsFreedByItsLastHolder) {
  AttachedBlocks blocks(2, 8, 1);
  ASSERT_TRUE(blocks.Claim(1));
  const BlockId block = blocks.Draw();
  blocks.Attach(BlockId(0), block, kStep, SequenceId(1));
  ASSERT_TRUE(blocks.Claim(1));
  EXPECT_EQ(blocks.Hold(BlockId(0)), block);
  blocks.Release(block);
  EXPECT_EQ(blocks.pool().used(), 1u) << "one holder is left";
  blocks.Detach(BlockId(0));
  EXPECT_EQ(blocks.pool().used(), 1u) << "held blocks outlive their node";
  blocks.Release(block);
  EXPECT_EQ(blocks.pool().free(), 2u);
}

TEST_F(AttachedBlocksTest, SharedBlocksAreClaimedByEachHolder) {
  AttachedBlocks blocks(4, 8, 1);
  Fill(blocks, 1);
  ASSERT_TRUE(blocks.Claim(2));
  blocks.Hold(BlockId(0));
  ASSERT_TRUE(blocks.Claim(2));
  blocks.Hold(BlockId(0));
  EXPECT_EQ(blocks.available(), 0u);
  EXPECT_FALSE(blocks.Claim(1)) << "each of the two will need two blocks of its own";
}

TEST_F(AttachedBlocksTest, RetiringBlocksAreNotAvailable) {
  AttachedBlocks blocks(4, 8, 1);
  ASSERT_TRUE(blocks.Claim(3));
  const BlockId block = blocks.Draw();
  blocks.Unclaim(2);
  blocks.Retire(block);
  EXPECT_EQ(blocks.returning(), 1u);
  EXPECT_EQ(blocks.available(), 3u);
  blocks.Reclaim(block);
  EXPECT_EQ(blocks.available(), 4u);
}

// A sequence that ended may read the block in a plan in flight, after the other one released it.
TEST_F(AttachedBlocksTest, ASharedBlockStaysClaimedByASequenceThatEnded) {
  AttachedBlocks blocks(4, 8, 1);
  Fill(blocks, 1);
  ASSERT_TRUE(blocks.Claim(2));
  const BlockId block = blocks.Hold(BlockId(0));
  ASSERT_TRUE(blocks.Claim(1));
  blocks.Hold(BlockId(0));
  blocks.Retire(block);
  EXPECT_EQ(blocks.available(), 1u);
  blocks.Release(block);
  EXPECT_EQ(blocks.pool().retiring(), 1u);
  EXPECT_EQ(blocks.available(), 1u);
  blocks.Reclaim(block);
  EXPECT_EQ(blocks.available(), 2u);
}

TEST_F(AttachedBlocksTest, TheBlockOfAPinnedNodeIsNotEvicted) {
  AttachedBlocks blocks(2, 8, 1);
  Fill(blocks, 2);
  blocks.Pin(BlockId(0));
  blocks.Pin(BlockId(1));
  EXPECT_FALSE(blocks.CanDraw());
  blocks.Unpin(BlockId(1));
  ASSERT_TRUE(blocks.CanDraw());
  ASSERT_TRUE(blocks.Claim(1));
  blocks.Draw();
  EXPECT_NE(blocks.BlockOf(BlockId(0)), kNoBlock);
  EXPECT_EQ(blocks.BlockOf(BlockId(1)), kNoBlock);
}

TEST_F(AttachedBlocksTest, ANodeKeepsItsFirstBlock) {
  AttachedBlocks blocks(4, 8, 1);
  Fill(blocks, 1);
  const BlockId first = blocks.BlockOf(BlockId(0));
  ASSERT_TRUE(blocks.Claim(1));
  const BlockId second = blocks.Draw();
  blocks.Attach(BlockId(0), second, kNext, SequenceId(2));
  EXPECT_EQ(blocks.BlockOf(BlockId(0)), first);
  std::vector<BlockId> nodes;
  blocks.AppendNodesOf(SequenceId(2), nodes);
  EXPECT_TRUE(nodes.empty());
  blocks.AppendNodesOf(SequenceId(1), nodes);
  EXPECT_EQ(nodes, std::vector{BlockId(0)});
}

}  // namespace
}  // namespace penstock::scheduler
