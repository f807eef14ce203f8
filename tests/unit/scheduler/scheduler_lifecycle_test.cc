// How requests end while plans are in flight: end of sequence, cancel, stop strings, lost groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Number of tokens, EOS included, of a request with a prompt of four tokens.
std::uint32_t EosOf(std::uint64_t id, const sim::SimGroupOptions& options) {
  const auto output = options.tokens.Output(Harness::Request(id, 4, 40).prompt, 40);
  return output.back() == sim::kEosToken ? static_cast<std::uint32_t>(output.size()) : 0;
}

// A request that ends with EOS after a few tokens, long before its length.
std::uint64_t RequestWithEosAt(const sim::SimGroupOptions& options, std::uint32_t from) {
  std::uint64_t id = 1;
  while (EosOf(id, options) < from) ++id;
  return id;
}

TEST(SchedulerLifecycle, ASurplusRowIsComputedButNeverReported) {
  sim::SimGroupOptions options;
  options.tokens.eos_one_in = 5;
  Harness harness({}, Harness::Capacity(), options);
  harness.Up();
  const std::uint64_t id = RequestWithEosAt(options, 3);
  const std::uint32_t eos = EosOf(id, options);
  harness.Arrive(id, 4, 40);
  Outputs out;
  while (All<Finished>(out).empty()) out = harness.Result();
  EXPECT_EQ(All<Finished>(out)[0].reason, FinishReason::kEos);
  EXPECT_EQ(All<Finished>(out)[0].generated_tokens, eos);
  EXPECT_EQ(harness.in_flight(), 1u) << "the plan with the surplus row";
  EXPECT_THAT(out.plans, IsEmpty());
  EXPECT_GT(harness.state().blocks_retiring, 0u) << "a plan in flight may still write them";

  const Outputs surplus = harness.Result();
  EXPECT_THAT(surplus.events, IsEmpty());
  EXPECT_EQ(harness.state().blocks_free + harness.state().blocks_cached,
            harness.state().blocks_total);
  ASSERT_EQ(surplus.plans.size(), 1u) << "the last ends must reach the shards";
  EXPECT_THAT(surplus.plans[0].plan.segments, IsEmpty());
  EXPECT_THAT(surplus.plans[0].plan.ends, ElementsAre(SlotId(0)));
  EXPECT_THAT(harness.Result().plans, IsEmpty()) << "idle: no plan, no message";
  EXPECT_EQ(harness.in_flight(), 0u);
}

// The second request has the same prompt, and the first one asked to keep it.
TEST(SchedulerLifecycle, AFailedStepLeavesNothingInThePrefixCache) {
  for (const bool cancelled : {false, true}) {
    sim::SimGroupOptions options;
    options.error_one_in = 1;
    Harness harness({}, Harness::Capacity(), options);
    harness.Up();
    Arrival arrival = Harness::Request(1, 10, 4);
    arrival.pinned_tokens = 9;
    harness.Apply(arrival);
    if (cancelled) harness.Apply(Cancel{RequestId(1)});
    while (harness.in_flight() > 0) harness.Result();
    arrival.request = RequestId(2);
    const auto started = All<Started>(harness.Apply(arrival));
    ASSERT_EQ(started.size(), 1u);
    EXPECT_EQ(started[0].cached_tokens, 0u) << "cancelled: " << cancelled;
  }
}

TEST(SchedulerLifecycle, NoRowIsPlannedBeyondTheLength) {
  Harness harness;
  harness.Up();
  const Outputs out = harness.Arrive(1, 4, 1);
  ASSERT_EQ(out.plans.size(), 1u) << "the prompt's last row gives the only token";
  const Outputs result = harness.Result();
  EXPECT_EQ(All<Finished>(result)[0].reason, FinishReason::kLength);
}

TEST(SchedulerLifecycle, ACancelEndsTheRequestAtOnceAndFreesBlocksWithinTwoResults) {
  Harness harness;
  harness.Up();
  harness.Arrive(1, 4, 50);
  harness.Arrive(2, 4, 50);
  for (int i = 0; i < 4; ++i) harness.Result();
  const std::uint32_t used_by_both = harness.state().blocks_used;
  const Outputs cancelled = harness.Apply(Cancel{RequestId(1)});
  ASSERT_EQ(All<Finished>(cancelled).size(), 1u);
  EXPECT_EQ(All<Finished>(cancelled)[0].reason, FinishReason::kCancelled);
  EXPECT_GT(harness.state().blocks_retiring, 0u);

  const Outputs first = harness.Result();
  ASSERT_EQ(first.plans.size(), 1u);
  EXPECT_EQ(first.plans[0].plan.segments.size(), 1u) << "the cancelled one is in no later plan";
  EXPECT_EQ(All<Tokens>(first).size(), 1u) << "its tokens are dropped";
  EXPECT_THAT(first.plans[0].plan.ends, IsEmpty()) << "a plan in flight still names its slot";
  const Outputs second = harness.Result();
  EXPECT_EQ(harness.state().blocks_retiring, 0u);
  EXPECT_LT(harness.state().blocks_used, used_by_both);
  EXPECT_THAT(second.plans[0].plan.ends, ElementsAre(SlotId(0)));
}

TEST(SchedulerLifecycle, AWaitingRequestIsCancelledWithoutAPlan) {
  Harness harness;
  harness.Arrive(1, 4, 5);
  const Outputs out = harness.Apply(Cancel{RequestId(1)});
  EXPECT_EQ(All<Finished>(out).size(), 1u);
  EXPECT_THAT(harness.Up().plans, IsEmpty());
  EXPECT_THAT(harness.Apply(Cancel{RequestId(1)}).events, IsEmpty()) << "a late cancel is ignored";
}

TEST(SchedulerLifecycle, CancelDuringPrefillStopsThePrompt) {
  Config config;
  config.max_step_tokens = 8;
  Harness harness(config);
  harness.Up();
  harness.Arrive(1, 100, 5);
  harness.Apply(Cancel{RequestId(1)});
  EXPECT_THAT(harness.Result().plans, IsEmpty());
  const Outputs last = harness.Result();
  ASSERT_EQ(last.plans.size(), 1u);
  EXPECT_THAT(last.plans[0].plan.segments, IsEmpty());
  EXPECT_EQ(harness.state().blocks_free + harness.state().blocks_cached,
            harness.state().blocks_total);
}

TEST(SchedulerLifecycle, AStopStringInReportedTokensEndsTheRequestWithItsCount) {
  Harness harness;
  harness.Up();
  harness.Arrive(1, 4, 50);
  for (int i = 0; i < 5; ++i) harness.Result();
  const Outputs out = harness.Apply(FinishAt{RequestId(1), 3});
  ASSERT_EQ(All<Finished>(out).size(), 1u);
  EXPECT_EQ(All<Finished>(out)[0].reason, FinishReason::kStopString);
  EXPECT_EQ(All<Finished>(out)[0].generated_tokens, 3u);
}

TEST(SchedulerLifecycle, AStopStringAtTheNewestTokenEndsTheRequest) {
  Harness harness;
  harness.Up();
  harness.Arrive(1, 4, 50);
  for (int i = 0; i < 5; ++i) harness.Result();
  const Outputs out = harness.Apply(FinishAt{RequestId(1), 5});
  ASSERT_EQ(All<Finished>(out).size(), 1u);
  EXPECT_EQ(All<Finished>(out)[0].generated_tokens, 5u);
}

TEST(SchedulerLifecycle, AStopStringInLaterTokensEndsTheRequestThere) {
  Harness harness;
  harness.Up();
  harness.Arrive(1, 4, 50);
  harness.Result();
  EXPECT_THAT(harness.Apply(FinishAt{RequestId(1), 3}).events, IsEmpty());
  harness.Result();
  const Outputs out = harness.Result();
  ASSERT_EQ(All<Finished>(out).size(), 1u);
  EXPECT_EQ(All<Finished>(out)[0].generated_tokens, 3u);
  EXPECT_EQ(harness.in_flight(), 1u) << "only the last ends: no row was planned beyond the stop";
}

TEST(SchedulerLifecycle, TheLowestPositionWins) {
  sim::SimGroupOptions options;
  options.tokens.eos_one_in = 5;
  Harness harness({}, Harness::Capacity(), options);
  harness.Up();
  const std::uint64_t id = RequestWithEosAt(options, 3);
  const std::uint32_t eos = EosOf(id, options);
  harness.Arrive(id, 4, 40);
  harness.Apply(FinishAt{RequestId(id), eos + 1});
  Outputs out;
  while (All<Finished>(out).empty()) out = harness.Result();
  EXPECT_EQ(All<Finished>(out)[0].reason, FinishReason::kEos);
  EXPECT_EQ(All<Finished>(out)[0].generated_tokens, eos);
}

TEST(SchedulerLifecycle, ALostGroupFailsRunningRequestsAndKeepsWaitingOnes) {
  Config config;
  config.max_batch_size = 1;
  Harness harness(config);
  harness.Up();
  harness.Arrive(1, 4, 50);
  harness.Arrive(2, 4, 5);
  const Outputs lost = harness.Apply(GroupLost{GroupId(0), harness.epoch(), "rank 1 died"});
  ASSERT_EQ(All<Failed>(lost).size(), 1u);
  EXPECT_EQ(All<Failed>(lost)[0].kind, FailureKind::kGroupLost);
  EXPECT_THAT(All<Failed>(lost)[0].message, HasSubstr("rank 1 died"));
  EXPECT_EQ(lost.events[0].request, RequestId(1));
  EXPECT_EQ(harness.state().waiting, 1u);
  EXPECT_THAT(harness.Result().events, IsEmpty()) << "results of a lost epoch are ignored";

  const Outputs up = harness.Up();
  ASSERT_FALSE(up.plans.empty());
  EXPECT_EQ(up.plans[0].plan.starts.size(), 1u);
  EXPECT_EQ(up.plans[0].plan.step, StepId(1)) << "a new epoch counts its steps from 1";
}

TEST(SchedulerLifecycle, AResultOfAnOldEpochIsIgnored) {
  Harness harness;
  harness.Up();
  harness.Arrive(1, 4, 50);
  const Epoch old = harness.epoch();
  harness.Up();
  harness.Arrive(2, 4, 50);
  StepResult late;
  late.epoch = old;
  late.step = StepId(1);
  EXPECT_THAT(harness.Apply(StepDone{GroupId(0), late}).plans, IsEmpty());
  EXPECT_EQ(harness.state().plans_in_flight, 2u);
}

TEST(SchedulerLifecycle, TheLossOfAnOldEpochIsIgnored) {
  Harness harness;
  harness.Up();
  const Epoch old = harness.epoch();
  harness.Up();
  harness.Arrive(1, 4, 50);
  const std::size_t in_flight = harness.state().plans_in_flight;
  EXPECT_THAT(harness.Apply(GroupLost{GroupId(0), old, "late"}).events, IsEmpty());
  EXPECT_EQ(harness.state().plans_in_flight, in_flight);
}

TEST(SchedulerLifecycle, AFailureOnTheShardEndsOnlyThatRequest) {
  sim::SimGroupOptions options;
  options.error_one_in = 3;
  Harness harness({}, Harness::Capacity(), options);
  harness.Up();
  for (std::uint64_t id = 1; id <= 8; ++id) harness.Arrive(id, 4, 3);
  std::size_t failed = 0;
  std::size_t finished = 0;
  while (harness.in_flight() > 0) {
    const Outputs out = harness.Result();
    failed += All<Failed>(out).size();
    finished += All<Finished>(out).size();
  }
  EXPECT_GT(failed, 0u);
  EXPECT_GT(finished, 0u);
  EXPECT_EQ(failed + finished, 8u);
}

TEST(SchedulerLifecycle, DrainRefusesNewRequestsAndLetsOthersEnd) {
  Config config;
  config.max_batch_size = 1;
  Harness harness(config);
  harness.Up();
  harness.Arrive(1, 4, 3);
  harness.Arrive(2, 4, 3);
  harness.Apply(Drain{});
  const Outputs late = harness.Arrive(3, 4, 3);
  ASSERT_EQ(All<Failed>(late).size(), 1u);
  EXPECT_EQ(All<Failed>(late)[0].kind, FailureKind::kDraining);
  std::size_t finished = 0;
  while (harness.in_flight() > 0) finished += All<Finished>(harness.Result()).size();
  EXPECT_EQ(finished, 2u);
}

TEST(SchedulerLifecycle, AnEndedSlotIsReusedInThePlanThatEndsIt) {
  GroupCapacity capacity = Harness::Capacity();
  capacity.slots = 1;
  Harness harness({}, capacity);
  harness.Up();
  harness.Arrive(1, 4, 1);
  harness.Arrive(2, 4, 1);
  const Outputs out = harness.Result();
  ASSERT_EQ(out.plans.size(), 1u);
  EXPECT_THAT(out.plans[0].plan.ends, ElementsAre(SlotId(0)));
  ASSERT_EQ(out.plans[0].plan.starts.size(), 1u);
  EXPECT_EQ(out.plans[0].plan.starts[0].slot, SlotId(0));
  EXPECT_EQ(out.plans[0].plan.starts[0].sequence, SequenceId(2)) << "every start is a new sequence";
  EXPECT_THAT(harness.shard().violations(), IsEmpty());
}

}  // namespace
}  // namespace penstock::scheduler
