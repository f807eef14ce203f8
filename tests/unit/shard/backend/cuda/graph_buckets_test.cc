#include "shard/backend/cuda/graph_buckets.h"

#include <gtest/gtest.h>

namespace penstock::shard::cuda {
namespace {

TEST(GraphBucketsTest, PadsRowsUpToTheNextBucket) {
  const GraphBuckets buckets(100, {.max_partitions = 1});
  EXPECT_EQ(buckets.Choose(1, 1)->rows, 1u);
  EXPECT_EQ(buckets.Choose(3, 3)->rows, 4u);
  EXPECT_EQ(buckets.Choose(9, 9)->rows, 16u);
  EXPECT_EQ(buckets.Choose(65, 65)->rows, 80u);
  EXPECT_EQ(buckets.Choose(97, 97)->rows, 100u) << "the largest is what the group allows";
  EXPECT_EQ(buckets.Choose(101, 101), std::nullopt);
}

TEST(GraphBucketsTest, ChoosesTheClassThatHoldsAllItems) {
  const GraphBuckets buckets(8, {.max_partitions = 32});  // 1, 4, 16 or 32 partitions per row
  EXPECT_EQ(buckets.Choose(4, 4), (GraphShape{4, 4}));
  EXPECT_EQ(buckets.Choose(4, 5), (GraphShape{4, 16}));
  EXPECT_EQ(buckets.Choose(3, 16), (GraphShape{4, 16})) << "a padding row has no item";
  EXPECT_EQ(buckets.Choose(8, 256), (GraphShape{8, 256}));
  EXPECT_EQ(buckets.Choose(8, 257), std::nullopt);
}

TEST(GraphBucketsTest, HasOneClassWherePartitionsGrow) {
  const GraphBuckets buckets(8, {.max_partitions = 32, .spare = 66});
  EXPECT_EQ(buckets.Choose(1, 1), (GraphShape{1, 67}));
  EXPECT_EQ(buckets.Choose(3, 69), (GraphShape{4, 70}));
  EXPECT_EQ(buckets.Choose(8, 75), std::nullopt);
  EXPECT_EQ(buckets.All().size(), 4u);
}

TEST(GraphBucketsTest, EveryStepThatFitsHasAShapeAmongAll) {
  const GraphBuckets buckets(40, {.max_partitions = 9});
  const std::vector<GraphShape> all = buckets.All();
  for (std::uint32_t rows = 1; rows <= 40; ++rows) {
    for (std::uint32_t items = rows; items <= rows * 9; ++items) {
      const auto shape = buckets.Choose(rows, items);
      ASSERT_TRUE(shape.has_value()) << rows << " rows, " << items << " items";
      EXPECT_GE(shape->rows, rows);
      EXPECT_GE(shape->items, items);
      EXPECT_NE(std::find(all.begin(), all.end(), *shape), all.end());
    }
  }
  EXPECT_EQ(all.front(), (GraphShape{40, 360})) << "the largest is recorded first";
}

}  // namespace
}  // namespace penstock::shard::cuda
