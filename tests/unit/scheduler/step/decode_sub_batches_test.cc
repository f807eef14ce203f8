#include "scheduler/step/decode_sub_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;

std::vector<DecodeRow> Rows(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& rows) {
  std::vector<DecodeRow> result;
  for (const auto& [id, length] : rows) {
    const auto index = static_cast<std::uint32_t>(result.size());
    result.push_back({SequenceId(id), SlotId(index), length, 1, index});
  }
  return result;
}

std::vector<std::uint32_t> PartsOf(const DecodeSubBatches& groups, std::size_t rows) {
  std::vector<std::uint32_t> parts;
  for (std::size_t i = 0; i < rows; ++i) parts.push_back(groups.PartOf(i));
  return parts;
}

SplitRule BySparsity() {
  SplitRule rule;
  rule.objective = SplitObjective::kSparsity;
  return rule;
}

TEST(DecodeSubBatches, PartsRiseWhenRowsLeave) {
  DecodeSubBatches groups(BySparsity());
  EXPECT_FALSE(groups.Update(Rows({{1, 300}, {2, 300}, {3, 300}, {4, 50}}), 100));
  EXPECT_EQ(groups.parts(), 1u);
  const auto left = Rows({{3, 300}, {4, 50}});
  EXPECT_TRUE(groups.Update(left, 100));
  EXPECT_THAT(PartsOf(groups, 2), ElementsAre(0, 1));
  EXPECT_FALSE(groups.Moved(0)) << "the long row's cells stay where they are";
  EXPECT_TRUE(groups.Moved(1));
  std::vector<SegmentGroup> sent;
  groups.AddGroups(left, sent);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_THAT(sent[0].segments, ElementsAre(0u));
  EXPECT_THAT(sent[1].segments, ElementsAre(1u));
}

TEST(DecodeSubBatches, PartsFallWhenALaunchCostsMoreThanThePadding) {
  DecodeSubBatches groups(SplitRule{});
  EXPECT_TRUE(groups.Update(Rows({{1, 300}, {2, 50}}), 100));
  EXPECT_EQ(groups.parts(), 2u);
  EXPECT_TRUE(groups.Update(Rows({{1, 300}, {2, 299}, {3, 280}}), 100));
  EXPECT_EQ(groups.parts(), 1u);
}

// Two cells saved in each step are 64 until the next partition: less than the 200 of the copy.
TEST(DecodeSubBatches, APartitionThatSavesLessThanItsCopiesIsNotTaken) {
  DecodeSubBatches groups(SplitRule{});
  groups.Update(Rows({{1, 100}, {2, 100}}), 0);
  EXPECT_EQ(groups.parts(), 1u);
  EXPECT_FALSE(groups.Update(Rows({{1, 102}, {2, 100}, {3, 102}}), 0));
  EXPECT_EQ(groups.parts(), 1u);
}

TEST(DecodeSubBatches, APartitionFollowsChangingLengths) {
  DecodeSubBatches groups(SplitRule{});
  std::vector<DecodeRow> rows = Rows({{1, 100}, {2, 100}});
  groups.Update(rows, 10);
  rows[0].length = 400;  // as a contrived draft would
  for (std::uint32_t step = 1; step < kResplitSteps; ++step) {
    ASSERT_FALSE(groups.Update(rows, 10)) << step;
    ASSERT_EQ(groups.Cells(), 800u);
  }
  EXPECT_TRUE(groups.Update(rows, 10));
  EXPECT_EQ(groups.Cells(), 500u);
}

TEST(DecodeSubBatches, RandomArrivalsAndExits) {
  constexpr std::uint32_t kSeed = 7;
  std::mt19937 random(kSeed);
  for (int run = 0; run < 300; ++run) {
    SplitRule rule;
    rule.objective = run % 2 == 0 ? SplitObjective::kSparsity : SplitObjective::kCost;
    rule.max_splits = 1 + random() % 5;
    const std::uint64_t launch = random() % 2000;
    DecodeSubBatches groups(rule);
    std::map<std::uint64_t, std::uint64_t> lengths;
    std::uint64_t next = 0;
    for (int step = 0; step < 60; ++step) {
      for (auto& [id, length] : lengths) ++length;
      while (random() % 3 == 0) lengths[++next] = 1 + random() % 900;
      if (!lengths.empty() && random() % 4 == 0) {
        lengths.erase(std::next(lengths.begin(), random() % lengths.size()));
      }
      const auto rows = Rows({lengths.begin(), lengths.end()});
      groups.Update(rows, launch);
      ASSERT_LE(groups.parts(), rule.max_splits) << "seed " << kSeed << ", run " << run;
      std::vector<SegmentGroup> sent;
      groups.AddGroups(rows, sent);
      std::set<std::uint32_t> named;
      std::uint64_t cells = 0;
      for (const SegmentGroup& group : sent) {
        ASSERT_FALSE(group.segments.empty()) << "seed " << kSeed << ", run " << run;
        std::uint64_t longest = 0;
        for (const std::uint32_t i : group.segments) {
          longest = std::max(longest, rows[i].length);
          ASSERT_TRUE(named.insert(i).second);
        }
        cells += longest * group.segments.size();
      }
      ASSERT_EQ(named.size(), rows.size());
      ASSERT_EQ(cells, groups.Cells());
    }
  }
}

GroupCapacity Padded() {
  GroupCapacity capacity = Harness::Capacity();
  capacity.padded_attention = true;
  return capacity;
}

TEST(DecodeSubBatches, PlansOfAPaddedGroupNameEverySegmentOnce) {
  Config config;
  config.split = SplitObjective::kSparsity;
  config.pipeline_depth = 1;
  Harness harness(config, Padded());
  harness.Up();
  harness.Arrive(1, 100, 20);
  Outputs out = harness.Result();
  harness.Arrive(2, 3, 20);
  bool split = false;
  while (harness.in_flight() > 0) {
    for (const PlanOut& plan : out.plans) {
      std::set<std::uint32_t> named;
      for (const SegmentGroup& group : plan.plan.groups) {
        for (const std::uint32_t i : group.segments) EXPECT_TRUE(named.insert(i).second);
      }
      EXPECT_EQ(named.size(), plan.plan.segments.size());
    }
    for (const Decision& decision : All(out, DecisionKind::kSplit)) {
      split = true;
      EXPECT_EQ(decision.needed, 2u);
    }
    if (!out.steps.empty() && out.steps[0].decode_parts == 2) {
      EXPECT_EQ(out.steps[0].decode_cells, out.steps[0].decode_tokens);
    }
    out = harness.Result();
  }
  EXPECT_TRUE(split) << "100 and 3 positions are too sparse in one part";
}

TEST(DecodeSubBatches, WithoutPaddedAttentionThereAreNoSubBatches) {
  Harness harness;
  harness.Up();
  harness.Arrive(1, 100, 3);
  while (harness.in_flight() > 0) {
    const Outputs out = harness.Result();
    for (const PlanOut& plan : out.plans) EXPECT_TRUE(plan.plan.groups.empty());
  }
}

}  // namespace
}  // namespace penstock::scheduler
