#include "scheduler/placement.h"

#include <gtest/gtest.h>

namespace penstock::scheduler {
namespace {

constexpr Shortage kShort{Budget::kBlocks, 4, 1};

std::optional<GroupOffer> ChooseGroup(const std::vector<GroupOffer>& offers) {
  return GroupPlacement(PlacementPolicy::kLeastLoaded, 0).Choose(offers);
}

GroupOffer Offer(std::uint32_t group, std::uint64_t uncached_tokens) {
  GroupOffer offer;
  offer.group = GroupId(group);
  offer.uncached_tokens = uncached_tokens;
  return offer;
}

TEST(GroupPlacement, LeastLoadedWins) {
  const auto best = ChooseGroup({{GroupId(0), 3, {}}, {GroupId(1), 1, {}}, {GroupId(2), 2, {}}});
  ASSERT_TRUE(best);
  EXPECT_EQ(best->group, GroupId(1));
}

TEST(GroupPlacement, TiesGoToTheLowestId) {
  EXPECT_EQ(ChooseGroup({{GroupId(2), 1, {}}, {GroupId(1), 1, {}}})->group, GroupId(1));
}

TEST(GroupPlacement, AGroupWithAShortageIsSkipped) {
  EXPECT_EQ(ChooseGroup({{GroupId(0), 1, kShort}, {GroupId(1), 5, {}}})->group, GroupId(1));
}

TEST(GroupPlacement, IfAllHaveAShortageTheLeastLoadedOneIsReported) {
  const auto best = ChooseGroup({{GroupId(0), 5, kShort}, {GroupId(1), 2, kShort}});
  ASSERT_TRUE(best && best->shortage);
  EXPECT_EQ(best->group, GroupId(1));
}

TEST(GroupPlacement, WithoutOffersNoGroupIsChosen) { EXPECT_FALSE(ChooseGroup({})); }

TEST(GroupPlacement, AMatchIsWeighedAgainstTheBacklog) {
  GroupPlacement placement(PlacementPolicy::kPrefixMatch, 250);
  placement.Up(GroupId(0));
  placement.Up(GroupId(1));
  const std::vector<GroupOffer> offers = {Offer(0, 100), Offer(1, 1000)};
  placement.Admitted(GroupId(0), 3600);
  EXPECT_EQ(placement.Choose(offers)->group, GroupId(0)) << "100 + 900 against 1000";
  placement.Admitted(GroupId(0), 8);
  EXPECT_EQ(placement.Choose(offers)->group, GroupId(1));
  EXPECT_EQ(placement.Backlog(GroupId(0)), 3608u);
}

TEST(GroupPlacement, ANewGroupHasTheSmallestBacklog) {
  GroupPlacement placement(PlacementPolicy::kPrefixMatch, 250);
  placement.Up(GroupId(0));
  placement.Admitted(GroupId(0), 5000);
  placement.Up(GroupId(1));
  EXPECT_EQ(placement.Backlog(GroupId(0)), 0u);
  EXPECT_EQ(placement.Backlog(GroupId(1)), 0u);
}

TEST(GroupPlacement, AnIdleGroupTakesARequestThatWouldWait) {
  GroupPlacement placement(PlacementPolicy::kPrefixMatch, 250);
  placement.Up(GroupId(0));
  placement.Up(GroupId(1));
  std::vector<GroupOffer> offers = {Offer(0, 0), Offer(1, 1000)};
  offers[0].plans_in_flight = 2;
  EXPECT_EQ(placement.Choose(offers)->group, GroupId(0));
  EXPECT_EQ(placement.Choose(offers, true)->group, GroupId(1)) << "rather there than not at all";
}

TEST(GroupPlacement, RoundRobinTakesTheNextOne) {
  GroupPlacement placement(PlacementPolicy::kRoundRobin, 0);
  std::vector<GroupId> taken;
  for (int i = 0; i < 4; ++i) {
    taken.push_back(placement.Choose({Offer(0, 0), Offer(1, 9), Offer(2, 9)})->group);
    placement.Admitted(taken.back(), 1);
  }
  EXPECT_EQ(taken, (std::vector{GroupId(0), GroupId(1), GroupId(2), GroupId(0)}));
}

}  // namespace
}  // namespace penstock::scheduler
