// Admission, batching, refusals and their reasons, through the whole scheduler.
#include "scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Delivers results until no plan is in flight. Returns the number of sequences of each step that
// computes.
std::vector<std::uint32_t> RunOut(Harness& harness) {
  std::vector<std::uint32_t> sizes;
  while (harness.in_flight() > 0) {
    for (const StepInfo& step : harness.Result().steps) {
      if (step.sequences > 0) sizes.push_back(step.sequences);
    }
  }
  return sizes;
}

TEST(Scheduler, OneRequestRunsToItsLength) {
  Harness harness;
  harness.Up();
  Outputs all = harness.Arrive(1, 5, 3);
  EXPECT_EQ(all.plans.size(), 2u) << "prompt, then the first decode before its result is known";
  std::vector<TokenId> tokens;
  while (harness.in_flight() > 0) {
    const Outputs out = harness.Result();
    for (const Tokens& event : All<Tokens>(out)) {
      EXPECT_EQ(event.first_index, tokens.size());
      for (const SampledToken& token : event.tokens) tokens.push_back(token.token);
    }
    all.events.insert(all.events.end(), out.events.begin(), out.events.end());
  }
  EXPECT_EQ(tokens, sim::TokenSource{}.Output(Harness::Request(1, 5, 3).prompt, 3));
  const std::vector<Finished> ends = All<Finished>(all);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].reason, FinishReason::kLength);
  EXPECT_EQ(ends[0].generated_tokens, 3u);
  EXPECT_THAT(harness.shard().violations(), IsEmpty());
  EXPECT_EQ(harness.shard().sequences(), 0u) << "the last ends reached the shard";
}

TEST(Scheduler, AShortRequestRunsBesideALongOne) {
  Harness harness;
  harness.Up();
  harness.Arrive(1, 4, 10);
  harness.Result();
  harness.Arrive(2, 4, 2);
  EXPECT_THAT(RunOut(harness), ElementsAre(2, 2, 1, 1, 1, 1, 1));
}

TEST(Scheduler, DecodesAreInEveryStepWhileALongPromptIsPrefilled) {
  Config config;
  config.max_step_tokens = 16;
  Harness harness(config);
  harness.Up();
  harness.Arrive(1, 4, 40);
  harness.Result();
  Outputs out = harness.Arrive(2, 100, 1);
  std::uint32_t prefilled = 0;
  while (prefilled < 100) {
    for (const StepInfo& step : out.steps) {
      EXPECT_EQ(step.decode_rows, 1u);
      EXPECT_LE(step.prefill_tokens, 15u);
      prefilled += step.prefill_tokens;
    }
    out = harness.Result();
  }
  EXPECT_EQ(prefilled, 100u);
  EXPECT_THAT(harness.shard().violations(), IsEmpty());
}

TEST(Scheduler, ChunkingIsRecordedOnce) {
  Config config;
  config.max_step_tokens = 16;
  Harness harness(config);
  harness.Up();
  const Outputs out = harness.Arrive(1, 40, 1);
  EXPECT_EQ(out.plans.size(), 2u);
  const std::vector<Decision> chunked = All(out, DecisionKind::kChunked);
  ASSERT_EQ(chunked.size(), 1u);
  EXPECT_EQ(chunked[0].short_of, Budget::kStepTokens);
  EXPECT_EQ(chunked[0].needed, 40u);
  EXPECT_EQ(chunked[0].available, 16u);
}

TEST(Scheduler, ADeferralHasTheShortBudgetAndTheBlockingRequest) {
  GroupCapacity capacity = Harness::Capacity();
  capacity.blocks = 10;
  Harness harness({}, capacity);
  harness.Up();
  harness.Arrive(1, 16, 16);  // 8 blocks
  harness.Result();
  const Outputs second = harness.Arrive(2, 8, 4);  // 3 blocks
  EXPECT_THAT(All(second, DecisionKind::kDeferred), IsEmpty()) << "no step was made yet";
  const std::vector<Decision> deferred = All(harness.Result(), DecisionKind::kDeferred);
  ASSERT_EQ(deferred.size(), 1u);
  EXPECT_EQ(deferred[0].request, RequestId(2));
  EXPECT_EQ(deferred[0].short_of, Budget::kBlocks);
  EXPECT_EQ(deferred[0].needed, 3u);
  EXPECT_EQ(deferred[0].available, 2u);
  EXPECT_EQ(deferred[0].behind, RequestId(1));
  EXPECT_THAT(All(harness.Result(), DecisionKind::kDeferred), IsEmpty()) << "the same reason";

  const std::vector<Decision> third = All(harness.Arrive(3, 1, 1), DecisionKind::kDeferred);
  ASSERT_EQ(third.size(), 1u);
  EXPECT_EQ(third[0].short_of, Budget::kOrder) << "first come, first served: no request overtakes";
  EXPECT_EQ(third[0].behind, RequestId(2));
}

TEST(Scheduler, TheQueueIsBounded) {
  Config config;
  config.max_waiting_requests = 1;
  Harness harness(config);
  harness.Arrive(1, 4, 1);
  const Outputs out = harness.Arrive(2, 4, 1);
  const std::vector<Failed> failed = All<Failed>(out);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].kind, FailureKind::kQueueFull);
  EXPECT_THAT(failed[0].message, HasSubstr("`max-waiting-requests` is 1"));
  EXPECT_EQ(All(out, DecisionKind::kRefused)[0].short_of, Budget::kQueue);
}

TEST(Scheduler, ARequestThatCanNeverFitDoesNotBlockTheQueue) {
  Harness harness;
  // Only a group knows whether a request fits. So the first group decides.
  EXPECT_THAT(All<Failed>(harness.Arrive(1, 250, 100)), IsEmpty());
  harness.Arrive(2, 4, 1);
  const Outputs out = harness.Up();
  ASSERT_EQ(All<Failed>(out).size(), 1u);
  EXPECT_EQ(All<Failed>(out)[0].kind, FailureKind::kTooLarge);
  EXPECT_EQ(All<Started>(out).size(), 1u);
  // With a group up: refused at once.
  EXPECT_EQ(All<Failed>(harness.Arrive(3, 250, 100)).size(), 1u);
}

TEST(Scheduler, RequestsWaitForAGroup) {
  Harness harness;
  const Outputs out = harness.Arrive(1, 4, 1);
  EXPECT_THAT(out.plans, IsEmpty());
  ASSERT_EQ(All(out, DecisionKind::kDeferred).size(), 1u);
  EXPECT_EQ(All(out, DecisionKind::kDeferred)[0].short_of, Budget::kGroup);
  EXPECT_EQ(harness.Up().plans.size(), 1u);
}

TEST(Scheduler, WithoutBatchingRequestsRunOneAfterTheOther) {
  Config config;
  config.batching = Batching::kNone;
  Harness harness(config);
  harness.Up();
  for (std::uint64_t id = 1; id <= 3; ++id) harness.Arrive(id, 4, 3);
  for (const std::uint32_t size : RunOut(harness)) EXPECT_EQ(size, 1u);
  EXPECT_EQ(harness.state().waiting, 0u);
}

TEST(Scheduler, AStaticBatchIsClosedUntilAllItsRequestsEnded) {
  Config config;
  config.batching = Batching::kStatic;
  Harness harness(config);
  harness.Arrive(1, 4, 2);
  harness.Arrive(2, 4, 5);
  harness.Up();
  harness.Arrive(3, 4, 2);
  // 1 and 2 start together; 3 waits for the longer one.
  EXPECT_THAT(RunOut(harness), ElementsAre(1, 1, 1, 1, 1));
  EXPECT_EQ(harness.state().waiting, 0u);
}

TEST(Scheduler, WholePromptsAreNotSplit) {
  Config config;
  config.prefill = Prefill::kWhole;
  config.max_step_tokens = 10;
  Harness harness(config);
  harness.Arrive(1, 8, 2);
  harness.Arrive(2, 8, 2);
  const Outputs out = harness.Up();
  ASSERT_EQ(out.steps.size(), 2u);
  EXPECT_EQ(out.steps[0].prefill_tokens, 8u);
  EXPECT_EQ(out.steps[1].prefill_tokens, 8u);
  EXPECT_EQ(out.steps[1].decode_rows, 1u);
}

TEST(Scheduler, PromptLogprobsComeOnceBeforeTheFirstToken) {
  Config config;
  config.max_step_tokens = 4;
  Harness harness(config);
  harness.Up();
  Arrival arrival = Harness::Request(1, 10, 2);
  arrival.logprobs.prompt_logprobs = true;
  harness.Apply(arrival);
  Outputs all;
  while (harness.in_flight() > 0) {
    const Outputs out = harness.Result();
    all.events.insert(all.events.end(), out.events.begin(), out.events.end());
  }
  ASSERT_EQ(All<PromptLogprobs>(all).size(), 1u);
  EXPECT_THAT(All<PromptLogprobs>(all)[0].logprobs,
              ElementsAre(-1, -2, -3, -4, -5, -6, -7, -8, -9));
  EXPECT_TRUE(std::holds_alternative<PromptLogprobs>(all.events[0].what));
}

TEST(Scheduler, TheLeastLoadedGroupGetsTheNextRequest) {
  Scheduler scheduler(Config{});
  Outputs out;
  for (std::uint32_t group = 0; group < 2; ++group) {
    scheduler.Apply({Time(Duration(1)), GroupUp{GroupId(group), Epoch(1), Harness::Capacity(), {}}},
                    out);
  }
  for (std::uint64_t id = 1; id <= 2; ++id) {
    scheduler.Apply({Time(Duration(3)), Harness::Request(id, 4, 50)}, out);
  }
  ASSERT_EQ(out.plans.size(), 4u);
  EXPECT_EQ(out.plans[0].group, GroupId(0));
  EXPECT_EQ(out.plans[2].group, GroupId(1));
}

TEST(Scheduler, InvalidSettingsAreNamed) {
  Config config;
  EXPECT_EQ(WhyInvalid(config), std::nullopt);
  config.max_step_tokens = 0;
  EXPECT_THAT(*WhyInvalid(config), HasSubstr("`max-step-tokens` must be >= 1"));
  config = {};
  config.order = Order::kLongestPrefix;
  config.prefix_caching = false;
  EXPECT_THAT(*WhyInvalid(config), HasSubstr("`order` longest-prefix"));
}

}  // namespace
}  // namespace penstock::scheduler
