#include "common/kv/slot_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SlotPool, AnEndedSlotIsReusableOnlyInThePlanThatEndsIt) {
  SlotPool slots(2);
  const SlotId first = slots.Take();
  slots.Take();
  EXPECT_EQ(slots.available(), 0u);
  slots.End(first);
  EXPECT_EQ(slots.available(), 1u);
  EXPECT_EQ(slots.Take(), first);
  EXPECT_THAT(slots.TakeEnds(), ElementsAre(first)) << "the plan that starts on it also ends it";
  EXPECT_EQ(slots.available(), 0u);
  EXPECT_FALSE(slots.has_ends());
}

TEST(SlotPool, EndsAreListedOnce) {
  SlotPool slots(3);
  const SlotId slot = slots.Take();
  slots.End(slot);
  EXPECT_THAT(slots.TakeEnds(), ElementsAre(slot));
  EXPECT_THAT(slots.TakeEnds(), IsEmpty());
  EXPECT_EQ(slots.available(), 3u);
}

TEST(SlotPool, ASlotThatNeverReachedTheShardsNeedsNoEnd) {
  SlotPool slots(1);
  slots.PutBack(slots.Take());
  EXPECT_FALSE(slots.has_ends());
  EXPECT_EQ(slots.available(), 1u);
}

}  // namespace
}  // namespace penstock
