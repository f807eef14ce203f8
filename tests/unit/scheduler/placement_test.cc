#include "scheduler/placement.h"

#include <gtest/gtest.h>

namespace penstock::scheduler {
namespace {

constexpr Shortage kShort{Budget::kBlocks, 4, 1};

TEST(Placement, LeastLoadedWins) {
  const auto best = ChooseGroup({{GroupId(0), 3, {}}, {GroupId(1), 1, {}}, {GroupId(2), 2, {}}});
  ASSERT_TRUE(best);
  EXPECT_EQ(best->group, GroupId(1));
}

TEST(Placement, TiesGoToTheLowestId) {
  EXPECT_EQ(ChooseGroup({{GroupId(2), 1, {}}, {GroupId(1), 1, {}}})->group, GroupId(1));
}

TEST(Placement, AGroupThatIsShortIsPassedOver) {
  EXPECT_EQ(ChooseGroup({{GroupId(0), 1, kShort}, {GroupId(1), 5, {}}})->group, GroupId(1));
}

TEST(Placement, WhenAllAreShortTheLeastLoadedSaysWhy) {
  const auto best = ChooseGroup({{GroupId(0), 5, kShort}, {GroupId(1), 2, kShort}});
  ASSERT_TRUE(best && best->shortage);
  EXPECT_EQ(best->group, GroupId(1));
}

TEST(Placement, NoGroupNoChoice) { EXPECT_FALSE(ChooseGroup({})); }

}  // namespace
}  // namespace penstock::scheduler
