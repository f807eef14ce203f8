#include "shard/tgi/sequence_pool.h"

#include <gmock/gmock.h>

#include "common/status.h"

namespace penstock::shard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SequencePool, BlockZeroAndOneSlotAreReservedForTheHealthCheck) {
  SequencePool pool(3, 5, 16);
  const auto a = pool.Take(33, false);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->blocks.size(), 3u);
  const auto b = pool.Take(1, false);
  ASSERT_TRUE(b.ok());
  for (const auto* allocation : {&*a, &*b}) {
    for (BlockId block : allocation->blocks) EXPECT_NE(block, BlockId(0));
  }
  EXPECT_THAT(Message(pool.Take(1, false).status()), HasSubstr("no slot is free"));
  const auto health = pool.Take(1, true);
  ASSERT_TRUE(health.ok());
  EXPECT_THAT(health->blocks, ElementsAre(BlockId(0)));
}

TEST(SequencePool, NamesTheNumberOfMissingBlocks) {
  SequencePool pool(8, 5, 16);
  const auto refused = pool.Take(65, false);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_THAT(Message(refused.status()), HasSubstr("asked 5, only 4 of 4 are free"));
  EXPECT_TRUE(pool.Take(64, false).ok());
  EXPECT_EQ(pool.capacity_tokens(), 80u);  // block 0 counts, as in TGI's answer to Warmup
}

TEST(SequencePool, AnEndedSlotIsReportedOnceAndReused) {
  SequencePool pool(3, 5, 16);
  const auto a = pool.Take(64, false);
  pool.Release(*a, true);
  const auto b = pool.Take(64, false);
  ASSERT_TRUE(b.ok());
  EXPECT_THAT(pool.TakeEnds(), ElementsAre(a->slot));
  EXPECT_TRUE(pool.TakeEnds().empty());
  pool.Release(*b, false);
  EXPECT_TRUE(pool.TakeEnds().empty());
  EXPECT_TRUE(pool.Take(64, false).ok());
}

}  // namespace
}  // namespace penstock::shard
