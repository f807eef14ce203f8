// Prompts with a common prefix, through the whole scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "scheduler/kv/prefix_sharing.h"
#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;

// A prompt of `shared` tokens that all these prompts have, and `own` tokens of its own.
Arrival Request(std::uint64_t id, std::uint32_t shared, std::uint32_t own,
                std::uint32_t max_new = 4) {
  Arrival arrival;
  arrival.request = RequestId(id);
  arrival.prompt.resize(shared);
  std::iota(arrival.prompt.begin(), arrival.prompt.end(), 5);
  arrival.prompt.resize(shared + own, static_cast<TokenId>(10000 + id));
  arrival.max_new_tokens = max_new;
  return arrival;
}

std::uint32_t Prefilled(const Outputs& out) {
  std::uint32_t tokens = 0;
  for (const StepInfo& step : out.steps) tokens += step.prefill_tokens;
  return tokens;
}

std::vector<std::uint32_t> Cached(const Outputs& out) {
  std::vector<std::uint32_t> cached;
  for (const Started& started : All<Started>(out)) cached.push_back(started.cached_tokens);
  return cached;
}

class PrefixSharingTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(harness_.shard().violations(), ElementsAre()); }

  void Finish() {
    while (harness_.in_flight() > 0) {
      const Outputs out = harness_.Result();
      prefilled_ += Prefilled(out);
      for (const Event& event : out.events) {
        failed_ += std::holds_alternative<Failed>(event.what) ? 1 : 0;
      }
    }
  }

  Harness harness_;
  std::uint32_t prefilled_ = 0;
  int failed_ = 0;
};

TEST_F(PrefixSharingTest, ALaterPromptBeginsAfterTheBlocksOfAnEarlierOne) {
  harness_.Up();
  harness_.Apply(Request(1, 12, 6));
  Finish();
  EXPECT_EQ(harness_.state().blocks_cached, 5u) << "18 prompt tokens and 3 of the answer";
  const Outputs out = harness_.Apply(Request(2, 12, 6));
  EXPECT_THAT(Cached(out), ElementsAre(12));
  EXPECT_EQ(Prefilled(out), 6u);
  EXPECT_EQ(harness_.state().blocks_cached, 2u);
  Finish();
}

TEST_F(PrefixSharingTest, OnePromptTokenIsAlwaysComputed) {
  harness_.Up();
  harness_.Apply(Request(1, 16, 0));
  Finish();
  EXPECT_THAT(Cached(harness_.Apply(Request(2, 16, 0))), ElementsAre(12));
  Finish();
}

TEST_F(PrefixSharingTest, TheNextTurnOfAConversationFindsTheOutput) {
  harness_.Up();
  Arrival turn = Request(1, 10, 0, 7);
  harness_.Apply(turn);
  Finish();
  const auto answer = sim::TokenSource{}.Output(turn.prompt, 7);
  turn.prompt.insert(turn.prompt.end(), answer.begin(), answer.end());
  turn.request = RequestId(2);
  EXPECT_THAT(Cached(harness_.Apply(turn)), ElementsAre(16)) << "all but the newest token";
  Finish();
}

TEST_F(PrefixSharingTest, PromptLogprobsAndOtherTenantsFindNothing) {
  harness_.Up();
  harness_.Apply(Request(1, 12, 6));
  Finish();
  Arrival logprobs = Request(2, 12, 6);
  logprobs.logprobs.prompt_logprobs = true;
  EXPECT_THAT(Cached(harness_.Apply(logprobs)), ElementsAre(0));
  Finish();
  Arrival other = Request(3, 12, 6);
  other.tenant = "other";
  EXPECT_THAT(Cached(harness_.Apply(other)), ElementsAre(0));
  Finish();
}

TEST(PrefixSharing, CanBeSwitchedOffAndNeedsShardsThatShareBlocks) {
  Config off;
  off.prefix_caching = false;
  GroupCapacity padded = Harness::Capacity();
  padded.shares_blocks = false;
  Harness harnesses[] = {Harness(off), Harness({}, padded)};
  for (Harness& harness : harnesses) {
    harness.Up();
    harness.Apply(Request(1, 12, 6));
    while (harness.in_flight() > 0) harness.Result();
    EXPECT_EQ(harness.state().blocks_cached, 0u);
    EXPECT_THAT(Cached(harness.Apply(Request(2, 12, 6))), ElementsAre(0));
  }
}

TEST(PrefixSharing, SixtyFourSimultaneousRequestsComputeTheirPrefixOnce) {
  for (const std::uint32_t depth : {1u, 2u, 3u}) {
    for (const Prefill prefill : {Prefill::kChunked, Prefill::kWhole}) {
      Config config;
      config.pipeline_depth = depth;
      config.prefill = prefill;
      config.max_step_tokens = prefill == Prefill::kWhole ? 4096 : 512;
      GroupCapacity capacity;
      capacity.blocks = 1000;
      capacity.block_size = 16;
      capacity.slots = 64;
      capacity.max_sequence_length = 4096;
      capacity.max_step_tokens = 4096;
      Harness harness(config, capacity);
      for (std::uint64_t id = 1; id <= 64; ++id) harness.Apply(Request(id, 2057, 20, 8));
      std::uint32_t computed = Prefilled(harness.Up());
      std::size_t finished = 0;
      while (harness.in_flight() > 0) {
        const Outputs out = harness.Result();
        computed += Prefilled(out);
        finished += All<Finished>(out).size();
      }
      EXPECT_EQ(finished, 64u);
      EXPECT_THAT(harness.shard().violations(), ElementsAre());
      // The prefix is 128 blocks and 9 tokens; the rest of its last block differs per request.
      EXPECT_EQ(computed, 2048u + 64 * 29) << "depth " << depth;
    }
  }
}

Config SmallSteps() {
  Config config;
  config.max_step_tokens = 8;
  return config;
}

// Two blocks a step, two steps in flight: the first request has 16 of its 30 prompt tokens in plans
// when the second one arrives, which has the same first 24 tokens.
class AwaitedPrefixTest : public ::testing::Test {
 protected:
  AwaitedPrefixTest() : harness_(SmallSteps()) {
    harness_.Up();
    harness_.Apply(Request(1, 24, 6));
    harness_.Apply(Request(2, 24, 6));
  }
  void TearDown() override { EXPECT_THAT(harness_.shard().violations(), ElementsAre()); }

  Harness harness_;
};

TEST_F(AwaitedPrefixTest, WaitsUntilTheSharedPrefixIsPlannedAndNamesItsOwner) {
  const Outputs waits = harness_.Result();
  EXPECT_THAT(Cached(waits), ElementsAre());
  const auto deferred = All(waits, DecisionKind::kDeferred);
  ASSERT_EQ(deferred.size(), 1u);
  EXPECT_EQ(deferred[0].request, RequestId(2));
  EXPECT_EQ(deferred[0].short_of, Budget::kPrefix);
  EXPECT_EQ(deferred[0].behind, RequestId(1));
  EXPECT_EQ(deferred[0].needed, 24u);
  EXPECT_EQ(deferred[0].available, 16u);
  const Outputs joins = harness_.Result();
  EXPECT_THAT(Cached(joins), ElementsAre(24));
  EXPECT_EQ(Prefilled(joins), 8u) << "the rest of the first, then its own";
}

TEST_F(AwaitedPrefixTest, ComputesTheRestItselfIfTheOwnerEnds) {
  harness_.Apply(Cancel{RequestId(1)});
  const Outputs out = harness_.Result();
  EXPECT_THAT(Cached(out), ElementsAre(16));
  EXPECT_EQ(Prefilled(out), 8u);
}

TEST_F(AwaitedPrefixTest, ComputesThePrefixAgainIfTheGroupIsLost) {
  harness_.Apply(GroupLost{GroupId(0), harness_.epoch(), "gone"});
  EXPECT_EQ(harness_.state().waiting, 1u);
  EXPECT_THAT(Cached(harness_.Up()), ElementsAre(0));
}

TEST(PrefixSharing, ARequestAwaitsTheLongestPrefixThatARunningOneComputes) {
  const GroupCapacity capacity = Harness::Capacity();
  SequenceTable table(capacity, true, {});
  const TextRegime regime(capacity);
  const PrefixSharing sharing(table, regime);
  Work work;
  for (const std::uint32_t shared : {4, 12, 8}) {
    work.request = Request(shared, shared, 9);
    table.Add(work, SequenceId(shared), {.blocks = 6, .tokens = 24}, {});
  }
  work.request = Request(20, 16, 9);
  const auto awaited = sharing.WhatToAwait(work, StepId(1));
  ASSERT_TRUE(awaited.has_value());
  EXPECT_EQ(awaited->owner, RequestId(12));
  EXPECT_EQ(awaited->shared, 12u);
}

TEST(PrefixSharing, BlocksOfAFailedRequestAreNotFound) {
  sim::SimGroupOptions failing;
  failing.error_one_in = 1;
  Harness harness({}, Harness::Capacity(), failing);
  harness.Up();
  harness.Apply(Request(1, 12, 6));
  while (harness.in_flight() > 0) harness.Result();
  EXPECT_EQ(harness.state().blocks_free, harness.state().blocks_total);
  EXPECT_THAT(Cached(harness.Apply(Request(2, 12, 6))), ElementsAre(0));
}

TEST_F(PrefixSharingTest, ARequestThatNeedsTheWholePoolEvictsTheCache) {
  harness_.Up();
  for (std::uint64_t id = 1; id <= 20; ++id) {
    harness_.Apply(Harness::Request(id, 20, 4));
    Finish();
  }
  EXPECT_GT(harness_.state().blocks_cached, 50u);
  Arrival whole = Harness::Request(20, 200, 56);
  whole.request = RequestId(100);
  const Outputs out = harness_.Apply(whole);
  EXPECT_THAT(Cached(out), ElementsAre(20)) << "what the newest of them left";
  EXPECT_EQ(out.steps.front().prefix.looked_up_tokens, 200u);
  EXPECT_EQ(out.steps.front().prefix.hit_tokens, 20u);
  Finish();
  EXPECT_EQ(failed_, 0);
  EXPECT_EQ(harness_.state().blocks_total, 64u);
}

// The prompt that was released last is evicted last, and each prompt from its end.
TEST_F(PrefixSharingTest, EvictsTheEndOfTheLeastRecentlyUsedPrompt) {
  harness_.Up();
  for (std::uint64_t id = 1; id <= 2; ++id) {
    harness_.Apply(Request(id, 0, 100, 1));  // 25 blocks each
    Finish();
  }
  Arrival again = Request(1, 0, 100, 1);
  again.request = RequestId(3);
  EXPECT_THAT(Cached(harness_.Apply(again)), ElementsAre(96));
  Finish();
  harness_.Apply(Request(4, 0, 80, 1));  // of its 20 blocks 6 have to be evicted
  Finish();
  Arrival first = Request(1, 0, 100, 1);
  first.request = RequestId(5);
  EXPECT_THAT(Cached(harness_.Apply(first)), ElementsAre(96));
  Finish();
  Arrival second = Request(2, 0, 100, 1);
  second.request = RequestId(6);
  EXPECT_THAT(Cached(harness_.Apply(second)), ElementsAre(76));
  Finish();
}

}  // namespace
}  // namespace penstock::scheduler
