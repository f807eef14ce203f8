#include "router/dispatch/held_lanes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace penstock::router {
namespace {

using std::chrono::milliseconds;

constexpr Duration kInterval = milliseconds(2);

class NoLane final : public Lane {
 public:
  bool RunOnce() override { return false; }
};

Time At(int ms) { return Time(milliseconds(ms)); }

scheduler::Event Token(std::uint32_t index) {
  scheduler::Tokens tokens;
  tokens.first_index = index;
  tokens.tokens.push_back({});
  return {RequestId(1), std::move(tokens)};
}

scheduler::Event End() { return {RequestId(1), scheduler::Finished{}}; }

// With a turn at 100 ms.
HeldLanes WithTurn() {
  HeldLanes held(kInterval);
  std::vector<std::shared_ptr<Lane>> due;
  held.TakeDue(At(100), due);
  return held;
}

TEST(HeldLanes, OnlyTokensBehindTheFirstWaitAndOnlyWithinTheInterval) {
  const HeldLanes held = WithTurn();
  EXPECT_TRUE(held.Holds(std::vector{Token(1)}, At(101)));
  EXPECT_FALSE(held.Holds(std::vector{Token(0)}, At(101))) << "the first token";
  EXPECT_FALSE(held.Holds(std::vector{Token(5), End()}, At(101))) << "the end";
  EXPECT_FALSE(held.Holds(std::vector{Token(1)}, At(102))) << "steps are longer than the interval";
}

TEST(HeldLanes, NothingWaitsWithoutAnInterval) {
  HeldLanes held(Duration{0});
  std::vector<std::shared_ptr<Lane>> due;
  held.TakeDue(At(100), due);
  EXPECT_FALSE(held.Holds(std::vector{Token(1)}, At(100)));
}

TEST(HeldLanes, AllGoTogetherWhenTheirTurnHasCome) {
  HeldLanes held = WithTurn();
  const auto one = std::make_shared<NoLane>();
  const auto other = std::make_shared<NoLane>();
  EXPECT_EQ(held.until(), std::nullopt) << "nobody is woken for nothing";
  held.Add(one);
  held.Add(other);
  EXPECT_EQ(held.until(), At(102));
  std::vector<std::shared_ptr<Lane>> due;
  held.TakeDue(At(101), due);
  EXPECT_TRUE(due.empty());
  held.TakeDue(At(102), due);
  EXPECT_EQ(due, (std::vector<std::shared_ptr<Lane>>{one, other}));
  EXPECT_EQ(held.until(), std::nullopt);
}

TEST(HeldLanes, OneThatHasEndedIsTakenOutOnce) {
  HeldLanes held = WithTurn();
  const std::shared_ptr<Lane> lane = std::make_shared<NoLane>();
  held.Add(lane);
  EXPECT_TRUE(held.Remove(lane));
  EXPECT_FALSE(held.Remove(lane));
}

}  // namespace
}  // namespace penstock::router
