// The slopes are those that transformers computes for BLOOM and MPT.
#include "shard/model/alibi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::shard {
namespace {

using testing::ElementsAre;

TEST(Alibi, APowerOfTwoHasOneSeries) {
  EXPECT_THAT(BloomSlopes(4), ElementsAre(0.25f, 0.0625f, 0.015625f, 0.00390625f));
  EXPECT_THAT(MptSlopes(4), ElementsAre(0.25f, 0.0625f, 0.015625f, 0.00390625f));
}

TEST(Alibi, OtherNumbersOfHeadsFillUp) {
  EXPECT_THAT(BloomSlopes(6), ElementsAre(0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f));
  EXPECT_THAT(MptSlopes(6), ElementsAre(0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f));
}

}  // namespace
}  // namespace penstock::shard
