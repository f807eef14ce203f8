#include "scheduler/kv/block_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;

TEST(BlockTable, DrawsBlocksAsPositionsNeedThem) {
  BlockCache cache(4, 16, true);
  BlockTable table(2);
  ASSERT_TRUE(table.Reserve(cache, 3));
  std::vector<BlockOp> ops;
  table.GrowTo(cache, 17, SlotId(5), ops);
  EXPECT_THAT(table.blocks(), ElementsAre(BlockId(0), BlockId(1)));
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[1].kind, BlockOp::Kind::kAppend);
  EXPECT_EQ(ops[1].kv_group, 2u);
  EXPECT_EQ(ops[1].slot, SlotId(5));
  EXPECT_EQ(ops[1].dst, BlockId(1));
  table.GrowTo(cache, 32, SlotId(5), ops);
  EXPECT_EQ(ops.size(), 2u) << "no block before its first position is written";
  EXPECT_EQ(cache.pool().available(), 1u);
}

TEST(BlockTable, RetireGivesTheReservationBackAtOnce) {
  BlockCache cache(4, 16, true);
  BlockTable table;
  ASSERT_TRUE(table.Reserve(cache, 4));
  std::vector<BlockOp> ops;
  table.GrowTo(cache, 32, SlotId(0), ops);
  table.Retire(cache);
  EXPECT_EQ(cache.pool().available(), 2u);
  EXPECT_EQ(cache.pool().retiring(), 2u);
  table.Reclaim(cache, SequenceId(1));
  EXPECT_EQ(cache.pool().available(), 4u);
}

}  // namespace
}  // namespace penstock::scheduler
