// Pinned prefixes through the whole scheduler. Blocks hold 4 tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <optional>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A prompt of `pinned` tokens that all these prompts begin with and pin, and `own` other tokens.
Arrival Request(std::uint64_t id, std::uint32_t pinned, std::uint32_t own,
                std::uint32_t max_new = 2) {
  Arrival arrival;
  arrival.request = RequestId(id);
  arrival.prompt.resize(pinned);
  std::iota(arrival.prompt.begin(), arrival.prompt.end(), 5);
  arrival.prompt.resize(pinned + own, static_cast<TokenId>(10000 + id));
  arrival.max_new_tokens = max_new;
  arrival.pinned_tokens = pinned;
  return arrival;
}

Config WithPins(std::uint32_t prefixes, std::uint32_t blocks = 0) {
  Config config;
  config.pinned_prefixes = prefixes;
  config.pinned_blocks = blocks;
  return config;
}

class PinnedPrefixesTest : public ::testing::Test {
 protected:
  void Make(Config config, std::uint32_t blocks = 64) {
    GroupCapacity capacity = Harness::Capacity();
    capacity.blocks = blocks;
    harness_.emplace(config, capacity);
    harness_->Up();
  }
  void TearDown() override { EXPECT_THAT(harness_->shard().violations(), IsEmpty()); }

  void Finish() {
    while (harness_->in_flight() > 0) Note(harness_->Result());
  }
  // Runs the request to its end. Returns how many of its tokens were cached.
  std::uint32_t Run(const Arrival& arrival) {
    const Outputs out = harness_->Apply(arrival);
    Note(out);
    std::uint32_t cached = UINT32_MAX;
    std::uint32_t prefilled = 0;
    for (const Started& started : All<Started>(out)) cached = started.cached_tokens;
    for (const StepInfo& step : out.steps) prefilled += step.prefill_tokens;
    EXPECT_EQ(prefilled, arrival.prompt.size() - cached) << "what was found is not computed";
    Finish();
    return cached;
  }
  void Note(const Outputs& out) {
    changes_.insert(changes_.end(), out.pins.begin(), out.pins.end());
  }
  std::vector<PinChange::Kind> Kinds() const {
    std::vector<PinChange::Kind> kinds;
    for (const PinChange& change : changes_) kinds.push_back(change.kind);
    return kinds;
  }

  std::optional<Harness> harness_;
  std::vector<PinChange> changes_;
};

using enum PinChange::Kind;

// The first user fills the block of the tail at different times, or not at all.
TEST_F(PinnedPrefixesTest, TheSecondRequestFindsEveryTokenOfThePrefix) {
  for (const std::uint32_t pinned : {1u, 3u, 4u, 7u, 8u, 13u}) {
    for (const std::uint32_t own : {1u, 2u, 9u}) {
      for (const std::uint32_t max_new : {1u, 2u, 9u}) {
        Make(WithPins(4));
        EXPECT_EQ(Run(Request(1, pinned, own, max_new)), 0u);
        EXPECT_EQ(Run(Request(2, pinned, 5)), pinned) << own << " own, " << max_new << " new";
        EXPECT_EQ(Run(Request(3, pinned, 1)), pinned);
        EXPECT_THAT(harness_->shard().violations(), IsEmpty());
      }
    }
  }
}

TEST_F(PinnedPrefixesTest, APrefixIsFoundAsSoonAsItIsPlanned) {
  Make(WithPins(4));
  harness_->Apply(Request(1, 6, 3, 20));
  harness_->Apply(Request(2, 6, 3));
  std::vector<Started> started;
  while (started.empty()) {
    const Outputs out = harness_->Result();
    started = All<Started>(out);
    EXPECT_THAT(All<Finished>(out), IsEmpty()) << "the first one still runs";
  }
  EXPECT_EQ(started[0].cached_tokens, 6u);
  Finish();
}

TEST_F(PinnedPrefixesTest, APromptCanBePinnedWhole) {
  Make(WithPins(4));
  EXPECT_EQ(Run(Request(1, 6, 0)), 0u);
  EXPECT_EQ(Run(Request(2, 6, 0)), 5u) << "one token is always computed";
  EXPECT_EQ(Run(Request(3, 6, 1)), 6u);
}

TEST_F(PinnedPrefixesTest, APromptCanUsePartOfATail) {
  Make(WithPins(4));
  Run(Request(1, 7, 1));
  Arrival near = Request(2, 7, 4);
  near.prompt[6] = 9999;
  EXPECT_EQ(Run(near), 6u);
}

TEST_F(PinnedPrefixesTest, APinnedPrefixOutlivesCachedBlocks) {
  Make(WithPins(4), 16);
  Run(Request(1, 6, 1));
  for (std::uint64_t id = 10; id < 20; ++id) Run(Harness::Request(id, 30, 2));
  EXPECT_EQ(Run(Request(2, 6, 1)), 6u);
}

// A sequence needs the whole pool: a pin reserves no memory.
TEST_F(PinnedPrefixesTest, APinnedPrefixIsDroppedForARunningSequence) {
  Make(WithPins(4), 8);
  Run(Request(1, 6, 1));
  EXPECT_EQ(Run(Harness::Request(10, 30, 2)), 0u);
  EXPECT_THAT(Kinds(), ElementsAre(kKept, kDropped));
  EXPECT_EQ(Run(Request(2, 6, 1)), 0u);
}

TEST_F(PinnedPrefixesTest, TheLeastRecentlyUsedPrefixIsDroppedFirst) {
  Make(WithPins(2));
  const auto other = [](std::uint64_t id, TokenId first) {
    Arrival arrival = Request(id, 6, 1);
    arrival.prompt[0] = first;
    return arrival;
  };
  Run(other(1, 101));
  Run(other(2, 102));
  Run(other(3, 101));
  Run(other(4, 103));
  EXPECT_THAT(Kinds(), ElementsAre(kKept, kKept, kUsed, kKept, kDropped));
  EXPECT_EQ(changes_.back().made_by, RequestId(2));
  EXPECT_EQ(changes_[2].by, RequestId(3));
}

TEST_F(PinnedPrefixesTest, BlocksAreBounded) {
  Make(WithPins(4, 3));
  Run(Request(1, 13, 1));  // 4 blocks
  EXPECT_THAT(Kinds(), IsEmpty());
  Run(Request(2, 9, 1));
  EXPECT_THAT(Kinds(), ElementsAre(kKept));
  EXPECT_EQ(changes_[0].blocks, 3u);
}

TEST_F(PinnedPrefixesTest, ATenantFindsAndForgetsItsOwnPrefixes) {
  Make(WithPins(4));
  Run(Request(1, 3, 1));
  Arrival other = Request(2, 3, 1);
  other.tenant = "other";
  EXPECT_EQ(Run(other), 0u);
  Note(harness_->Apply(ForgetPrefixes{"other", RequestId(1)}));
  EXPECT_THAT(Kinds(), ElementsAre(kKept, kKept)) << "another tenant's is not its own";
  Note(harness_->Apply(ForgetPrefixes{"", std::nullopt}));
  EXPECT_THAT(Kinds(), ElementsAre(kKept, kKept, kDropped));
  EXPECT_EQ(Run(Request(3, 3, 1)), 0u);
  other.request = RequestId(4);
  EXPECT_EQ(Run(other), 3u);
}

TEST_F(PinnedPrefixesTest, ALostGroupReportsItsPrefixesAsDropped) {
  Make(WithPins(4));
  Run(Request(1, 6, 1));
  Note(harness_->Apply(GroupLost{GroupId(0), harness_->epoch(), "gone"}));
  EXPECT_THAT(Kinds(), ElementsAre(kKept, kDropped));
}

TEST_F(PinnedPrefixesTest, NothingIsPinnedWithALimitOfZero) {
  Make(WithPins(0));
  Run(Request(1, 6, 1));
  EXPECT_EQ(Run(Request(2, 6, 1)), 4u) << "whole blocks are cached as ever";
  EXPECT_THAT(Kinds(), IsEmpty());
}

// Request 4 finds a tail, but its reservation takes the last block, so the tail cannot be copied.
// Without the tail its prompt does not fit beside that of request 3.
TEST_F(PinnedPrefixesTest, ARequestIsNotAdmittedForATailThatItCannotCopy) {
  Config config = WithPins(4);
  config.prefill = Prefill::kWhole;
  config.max_batch_prefill_tokens = 12;
  config.pipeline_depth = 1;
  Make(config, 9);
  Run(Request(1, 6, 0));
  harness_->Arrive(2, 4, 8);
  harness_->Arrive(3, 8, 4);
  harness_->Apply(Request(4, 6, 3, 3));
  const Outputs out = harness_->Result();
  const auto admitted = All(out, DecisionKind::kAdmitted);
  ASSERT_EQ(admitted.size(), 1u);
  EXPECT_EQ(admitted[0].request, RequestId(3));
  const auto deferred = All(out, DecisionKind::kDeferred);
  ASSERT_EQ(deferred.size(), 1u);
  EXPECT_EQ(deferred[0].request, RequestId(4));
  EXPECT_EQ(deferred[0].short_of, Budget::kPrefillTokens);
  EXPECT_EQ(deferred[0].needed, 5u);
  EXPECT_EQ(deferred[0].available, 4u);
  Finish();
}

}  // namespace
}  // namespace penstock::scheduler
