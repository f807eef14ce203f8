// Prompts of recurrent models, through the whole scheduler. Blocks have 4 tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <optional>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

GroupCapacity Recurrent(std::uint32_t snapshots) {
  GroupCapacity capacity = Harness::Capacity();
  capacity.snapshots = snapshots;
  return capacity;
}

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

class StateSnapshotsTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(harness_->shard().violations(), IsEmpty()); }

  void Use(std::uint32_t snapshots, Config config = {}) {
    harness_.emplace(config, Recurrent(snapshots));
    harness_->Up();
  }
  // Runs the request to its end and returns how many of its tokens were cached.
  std::uint32_t Run(Arrival request) {
    saved_.clear();
    computed_ = 0;
    cached_.reset();
    Listen(harness_->Apply(std::move(request)));
    while (harness_->in_flight() > 0) Listen(harness_->Result());
    return cached_.value_or(UINT32_MAX);
  }

  void Listen(const Outputs& out) {
    for (const Started& started : All<Started>(out)) cached_ = started.cached_tokens;
    for (const PlanOut& planned : out.plans) {
      for (const Segment& segment : planned.plan.segments) {
        if (segment.kind == Segment::Kind::kPrompt) computed_ = segment.first + segment.count;
      }
      for (const BlockOp& op : planned.plan.block_ops) {
        if (op.kind == BlockOp::Kind::kSaveState) saved_.push_back(computed_);
      }
    }
  }

  std::optional<Harness> harness_;
  std::optional<std::uint32_t> cached_;  // of the last request
  std::uint32_t computed_ = 0;           // of its prompt
  std::vector<std::uint32_t> saved_;     // positions of its snapshots
};

TEST_F(StateSnapshotsTest, TheNextTurnBeginsAfterTheLastFullBlockOfThePrompt) {
  Use(8);
  Arrival turn = Request(1, 10, 0, 7);
  EXPECT_EQ(Run(turn), 0u);
  EXPECT_THAT(saved_, ElementsAre(8));
  const auto answer = sim::TokenSource{}.Output(turn.prompt, 7);
  turn.prompt.insert(turn.prompt.end(), answer.begin(), answer.end());
  turn.request = RequestId(2);
  EXPECT_EQ(Run(turn), 8u) << "the blocks of the answer have no snapshot";
  EXPECT_THAT(saved_, ElementsAre(16));
}

TEST_F(StateSnapshotsTest, TheSecondPromptSavesWhereItPartsFromTheFirst) {
  Use(8);
  Run(Request(1, 12, 6));
  EXPECT_EQ(Run(Request(2, 12, 6)), 0u);
  EXPECT_THAT(saved_, ElementsAre(12)) << "its own blocks, after those of the first, are private";
  EXPECT_EQ(Run(Request(3, 12, 6)), 12u);
  EXPECT_THAT(saved_, ElementsAre(16));
}

TEST_F(StateSnapshotsTest, AWholePromptIsComputedAgainFromItsLastBlock) {
  Use(8);
  Run(Request(1, 16, 0));
  EXPECT_EQ(Run(Request(2, 16, 0)), 12u) << "one token is always computed";
  EXPECT_THAT(saved_, IsEmpty()) << "there is one at 12";
}

TEST_F(StateSnapshotsTest, AShortPromptIsNotCut) {
  Use(8);
  Run(Request(1, 4, 0));
  EXPECT_THAT(saved_, IsEmpty());
}

TEST_F(StateSnapshotsTest, PromptsThatAreComputedWholeAreCutToo) {
  Config whole;
  whole.prefill = Prefill::kWhole;
  Use(8, whole);
  Run(Request(1, 12, 6));
  EXPECT_THAT(saved_, ElementsAre(16));
  EXPECT_EQ(Run(Request(1, 12, 6)), 16u);
}

TEST_F(StateSnapshotsTest, TheLeastRecentlyUsedSnapshotIsReplaced) {
  Use(2);
  Run(Request(1, 0, 9));
  Run(Request(2, 0, 9));
  EXPECT_EQ(Run(Request(1, 0, 9)), 8u);
  Run(Request(3, 0, 9));
  EXPECT_EQ(Run(Request(1, 0, 9)), 8u);
  EXPECT_EQ(Run(Request(2, 0, 9)), 0u) << "its blocks are cached, its state is not";
}

// The second request waits until a plan saves the state of the first one.
TEST_F(StateSnapshotsTest, EqualPromptsThatArriveTogetherComputeOnce) {
  Config small;
  small.max_step_tokens = 8;
  Use(8, small);
  Listen(harness_->Apply(Request(1, 22, 0)));
  Arrival same = Request(2, 22, 0);
  Listen(harness_->Apply(same));
  cached_.reset();
  while (harness_->in_flight() > 0) Listen(harness_->Result());
  EXPECT_EQ(cached_, 20u);
}

TEST_F(StateSnapshotsTest, APromptDoesNotWaitForAnotherThatSavesNoSharedState) {
  Config small;
  small.max_step_tokens = 8;
  Use(8, small);
  Listen(harness_->Apply(Request(1, 16, 6)));
  Listen(harness_->Apply(Request(2, 16, 6)));
  cached_.reset();
  while (harness_->in_flight() > 0) {
    const Outputs out = harness_->Result();
    for (const Decision& decision : All(out, DecisionKind::kDeferred)) {
      EXPECT_NE(decision.short_of, Budget::kPrefix);
    }
    Listen(out);
  }
}

TEST_F(StateSnapshotsTest, WithoutPrefixCachingNoneIsSaved) {
  Config off;
  off.prefix_caching = false;
  Use(8, off);
  Run(Request(1, 12, 6));
  EXPECT_THAT(saved_, IsEmpty());
}

}  // namespace
}  // namespace penstock::scheduler
