// Groups with a window, from one table to whole requests on the scheduler.
#include "scheduler/kv/window_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;

TEST(WindowTable, HoldsTheBlocksOfItsWindow) {
  BlockCache cache(16, 4, true, {}, {8, 5});
  WindowTable table;
  ASSERT_TRUE(table.Claim(cache, 4));
  std::vector<BlockOp> ops;
  table.MoveTo(cache, 0);
  table.GrowTo(cache, 12, SlotId(3), ops);
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[2].kv_group, 1u);
  EXPECT_EQ(ops[2].slot, SlotId(3));
  EXPECT_EQ(ops[2].dst, BlockId(2));
  table.MoveTo(cache, 10);  // reads positions 3 to 10
  EXPECT_EQ(table.held(), 3u);
  table.MoveTo(cache, 11);  // reads positions 4 to 11
  EXPECT_EQ(table.held(), 2u);
  EXPECT_THAT(table.blocks(), ElementsAre(kNoBlock, BlockId(1), BlockId(2)));
  EXPECT_EQ(cache.window().pool().free(), 3u);
  EXPECT_EQ(cache.window().available(), 1u) << "its claim stays";
  table.Retire(cache);
  table.Reclaim(cache);
  EXPECT_EQ(cache.window().available(), 5u);
}

TEST(WindowTable, DoesNothingWithoutAWindow) {
  BlockCache cache(16, 4, true);
  WindowTable table;
  ASSERT_TRUE(table.Claim(cache, 0));
  std::vector<BlockOp> ops;
  table.MoveTo(cache, 100);
  table.GrowTo(cache, 12, SlotId(0), ops);
  EXPECT_TRUE(ops.empty());
  table.Retire(cache);
  table.Reclaim(cache);
}

class WindowTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kWindow = 8;
  static constexpr std::uint32_t kStep = 12;
  static constexpr std::uint32_t kMost = (kWindow + kStep) / 4 + 1;  // blocks of a sequence

  static Config Settings() {
    Config config;
    config.max_step_tokens = kStep;
    return config;
  }
  static GroupCapacity Capacity(std::uint32_t window_blocks) {
    GroupCapacity capacity = Harness::Capacity();
    capacity.window = kWindow;
    capacity.window_blocks = window_blocks;
    return capacity;
  }
  static Arrival Text(std::uint64_t id, std::uint32_t prompt, std::uint32_t max_new) {
    Arrival arrival = Harness::Request(id, prompt, max_new);
    for (std::uint32_t i = 0; i < prompt; ++i) arrival.prompt[i] = static_cast<TokenId>(100 + i);
    return arrival;
  }

  // Runs the request to its end. Returns how many of its tokens came from the prefix cache.
  static std::uint32_t Run(Harness& harness, const Arrival& arrival) {
    Outputs out = harness.Apply(arrival);
    std::vector<Started> started = All<Started>(out);
    while (harness.in_flight() > 0) {
      out = harness.Result();
      for (const Started& more : All<Started>(out)) started.push_back(more);
    }
    return started.empty() ? UINT32_MAX : started.front().cached_tokens;
  }
};

TEST_F(WindowTest, ALongTextHoldsItsWindowAndOneStep) {
  Harness harness(Settings(), Capacity(40));
  harness.Up();
  harness.Apply(Text(1, 100, 100));
  std::uint32_t most = harness.state().window_blocks_used;
  std::uint32_t full = 0;
  while (harness.in_flight() > 0) {
    harness.Result();
    most = std::max(most, harness.state().window_blocks_used);
    full = std::max(full, harness.state().blocks_used);
  }
  EXPECT_LE(most, kMost);
  EXPECT_GE(full, 49u) << "layers without a window keep all 199 positions";
  EXPECT_THAT(harness.shard().violations(), ::testing::IsEmpty());
}

TEST_F(WindowTest, AdmissionCountsTheWindowOnly) {
  GroupCapacity capacity = Capacity(2 * kMost);
  capacity.blocks = 256;
  Harness harness(Settings(), capacity);
  harness.Up();
  for (std::uint64_t id = 1; id <= 3; ++id) harness.Arrive(id, 4, 100);
  harness.Result();  // until then two plans are in flight, and no request is examined
  EXPECT_EQ(harness.state().running, 2u);
  EXPECT_EQ(harness.state().waiting_for[static_cast<std::size_t>(Budget::kBlocks)], 1u);
}

TEST_F(WindowTest, ARequestThatNeverFitsIsToldWhy) {
  Harness harness(Settings(), Capacity(kMost - 1));
  harness.Up();
  const std::vector<Failed> failed = All<Failed>(harness.Arrive(1, 4, 100));
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].kind, FailureKind::kTooLarge);
  EXPECT_THAT(failed[0].message,
              ::testing::HasSubstr("5 blocks of 4 tokens for the layers with a window"));
}

TEST_F(WindowTest, ALaterRequestReadsTheCachedWindow) {
  Harness harness(Settings(), Capacity(40));
  harness.Up();
  EXPECT_EQ(Run(harness, Text(1, 33, 2)), 0u);
  EXPECT_EQ(Run(harness, Text(2, 33, 2)), 32u);
  EXPECT_THAT(harness.shard().violations(), ::testing::IsEmpty());
}

// Two blocks of the window must be present before the last cached token.
TEST_F(WindowTest, AMatchEndsWhereItsWindowIsCached) {
  Harness harness(Settings(), Capacity(kMost));
  harness.Up();
  Run(harness, Text(1, 33, 2));
  Run(harness, Harness::Request(2, 40, 1));  // it needs the whole window pool
  EXPECT_GT(harness.state().blocks_cached, 8u) << "the other layers keep the whole prompt";
  EXPECT_EQ(Run(harness, Text(3, 33, 2)), 0u);
  EXPECT_EQ(Run(harness, Text(4, 33, 2)), 32u) << "request 3 computed the missing blocks again";
  EXPECT_THAT(harness.shard().violations(), ::testing::IsEmpty());
}

TEST_F(WindowTest, WithoutAPrefixCacheBlocksAreFreed) {
  Config config = Settings();
  config.prefix_caching = false;
  Harness harness(config, Capacity(40));
  harness.Up();
  EXPECT_EQ(Run(harness, Text(1, 60, 20)), 0u);
  EXPECT_EQ(harness.state().window_blocks_free, 40u);
  EXPECT_THAT(harness.shard().violations(), ::testing::IsEmpty());
}

TEST_F(WindowTest, APinnedTailIsCopiedInBothGroups) {
  Harness harness(Settings(), Capacity(40));
  harness.Up();
  Arrival first = Text(1, 40, 2);
  first.pinned_tokens = 30;
  Run(harness, first);
  Arrival second = Text(2, 30, 2);
  second.prompt.insert(second.prompt.end(), 5, TokenId(7));
  EXPECT_EQ(Run(harness, second), 30u);
  EXPECT_THAT(harness.shard().violations(), ::testing::IsEmpty());
}

TEST_F(WindowTest, AWindowPoolThatIsShortPreempts) {
  Config config = Settings();
  config.admission = AdmissionMode::kOptimistic;
  GroupCapacity capacity = Capacity(kMost + 2);
  Harness harness(config, capacity);
  harness.Up();
  std::size_t preempted = 0;
  std::size_t finished = 0;
  const auto count = [&](const Outputs& out) {
    preempted += All(out, DecisionKind::kPreempted).size();
    finished += All<Finished>(out).size();
  };
  for (std::uint64_t id = 1; id <= 3; ++id) {
    Arrival arrival = Harness::Request(id, 4, 60);
    arrival.predicted_tokens = 1;
    count(harness.Apply(arrival));
  }
  while (harness.in_flight() > 0) count(harness.Result());
  EXPECT_GT(preempted, 0u);
  EXPECT_EQ(finished, 3u);
  EXPECT_THAT(harness.shard().violations(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace penstock::scheduler
