#include "tools/plan/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "sim/fleet/warm_up_table.h"
#include "sim/trace/shape_trace.h"
#include "tools/plan/explain.h"

namespace penstock::plan {
namespace {

using std::chrono::milliseconds;

// A machine type with 8 GPUs, in groups of 1, 2 or 4 ranks. A step takes 2 ms, and for each token
// 40 us divided by the ranks. With more than one rank it takes 0.3 ms more.
struct SmallGrid {
  MachineType machine;
  Space space;
  Load load;
  Goal goal;

  explicit SmallGrid(Aim aim) {
    machine.name = "gpu";
    machine.count = 8;
    machine.price = 3;
    machine.watts = 500;
    for (const int ranks : {1, 2, 4}) {
      GroupType type{&machine, ranks, "test"};
      type.capacity = {.blocks = 2000, .slots = 32, .max_sequence_length = 4096};
      type.step_time = [ranks](const scheduler::StepShape& step) {
        const auto tokens = static_cast<std::int64_t>(step.Tokens());
        return Duration(2'000'000 + 40'000 * tokens / ranks + (ranks > 1 ? 300'000 : 0));
      };
      type.warm_up = sim::WarmUpTable(type.step_time);
      space.types.push_back(type);
    }
    space.step_tokens = {64, 256};
    space.orders = {scheduler::Order::kFcfs};
    space.admissions = {scheduler::AdmissionMode::kGuaranteed};
    load.trace = sim::UniformTrace(400, {32, 512}, {4, 32}, 7);
    goal.aim = aim;
    goal.slo.ttft = milliseconds(120);
    goal.slo.inter_token = milliseconds(9);
  }

  Found Run(unsigned threads = 1) const {
    auto found = Search(space, load, goal, threads);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *std::move(found) : Found{};
  }

  // Every setting with every number of groups.
  std::vector<Plan> Exhaustive() const {
    const Evaluator evaluator(load, goal);
    std::vector<Plan> plans;
    for (Setting setting : space.Settings()) {
      for (setting.groups = 1; setting.groups <= setting.type->MostGroups(); ++setting.groups) {
        const auto plan = evaluator.Measure(setting);
        const bool meets = !goal.demand || evaluator.Meets(setting, *goal.demand, 400);
        if (plan.ok() && plan->goodput > 0 && meets) plans.push_back(*plan);
      }
    }
    std::ranges::stable_sort(plans,
                             [&](const Plan& a, const Plan& b) { return Better(goal, a, b); });
    return plans;
  }
};

TEST(Search, FindsTheHighestRateOfTheExhaustiveSearch) {
  const SmallGrid grid(Aim::kThroughput);
  const Found found = grid.Run();
  ASSERT_FALSE(found.plans.empty());
  EXPECT_EQ(found.plans[0].setting.Text(), grid.Exhaustive()[0].setting.Text());
}

TEST(Search, FindsTheCheapestOfTheExhaustiveSearch) {
  SmallGrid grid(Aim::kCost);
  grid.goal.demand = 40;
  const Found found = grid.Run();
  ASSERT_FALSE(found.plans.empty());
  EXPECT_EQ(found.plans[0].setting.Text(), grid.Exhaustive()[0].setting.Text());
  EXPECT_GE(found.plans[0].summary.attainment, grid.goal.share);
}

TEST(Search, ThreadsDoNotChangeThePlan) {
  const SmallGrid grid(Aim::kThroughput);
  const Found one = grid.Run(1);
  const Found two = grid.Run(2);
  ASSERT_EQ(one.plans.size(), two.plans.size());
  EXPECT_EQ(one.runs, two.runs);
  for (std::size_t i = 0; i < one.plans.size(); ++i) {
    EXPECT_EQ(one.plans[i].setting.Text(), two.plans[i].setting.Text());
    EXPECT_EQ(one.plans[i].goodput, two.plans[i].goodput);
  }
}

TEST(Search, ADemandThatNothingMeetsHasNoPlan) {
  SmallGrid grid(Aim::kPower);
  grid.goal.demand = 1e6;
  EXPECT_TRUE(grid.Run().plans.empty());
}

TEST(Search, AShortBurstThatIsServedInTimeIsNoRate) {
  SmallGrid grid(Aim::kPower);
  grid.load.trace.requests.resize(8);
  grid.goal.slo = {.ttft = std::chrono::seconds(60)};
  grid.goal.demand = 1e6;
  EXPECT_TRUE(grid.Run().plans.empty());
}

TEST(Plan, PriceAndEnergyAreThoseOfAllRanks) {
  const SmallGrid grid(Aim::kCost);
  Plan plan{{&grid.space.types[1], 3}};
  plan.rate = 10;  // 36,000 requests an hour, on 6 ranks
  EXPECT_DOUBLE_EQ(plan.CostPer1000(), 6 * 3.0 / 36);
  EXPECT_DOUBLE_EQ(plan.WattHoursPer1000(), 6 * 500.0 / 36);
}

TEST(Load, TheTimesOfATraceKeepTheirShapeAtAnotherRate) {
  Load load;
  load.trace = sim::UniformTrace(3, {1, 1}, {1, 1}, 1);
  load.trace.requests[1].arrival = milliseconds(1500);
  load.trace.requests[2].arrival = milliseconds(2000);
  load.own_times = true;
  const sim::Trace twice = load.AtRate(2, 3);
  EXPECT_EQ(twice.requests[1].arrival, milliseconds(750));
  EXPECT_EQ(twice.requests[2].arrival, milliseconds(1000));
}

TEST(WhatWouldChange, NamesThePriceAtWhichAnotherMachineIsAsCheap) {
  SmallGrid grid(Aim::kCost);
  grid.goal.demand = 10;
  MachineType other = grid.machine;
  other.name = "other";
  other.price = 9;
  GroupType type = grid.space.types[0];
  type.machine = &other;
  const std::vector<Plan> plans = {{{&grid.space.types[0], 4, 256}, 20, 10, {}},
                                   {{&type, 2, 256}, 20, 10, {}}};
  const auto lines = WhatWouldChange(plans, grid.load, grid.goal, 1);
  EXPECT_EQ(lines[0], "a rate above 20 requests/s: more groups, or another plan");
  EXPECT_EQ(lines[1].substr(0, 37), "other, at a price below 6 for a rank:");
}

}  // namespace
}  // namespace penstock::plan
