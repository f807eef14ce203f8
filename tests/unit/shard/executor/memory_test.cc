#include <gmock/gmock.h>

#include "common/status.h"
#include "shard/executor/memory_plan.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

MemoryNeeds Needs(KvMemory kv) {
  MemoryNeeds needs;
  needs.rank = 1;
  needs.local_ranks = 2;
  needs.weight_bytes = 100 * kMiB;
  needs.scratch_bytes = 20 * kMiB;
  needs.scratch_step_tokens = 512;
  needs.kv = kv;
  return needs;
}

TEST(ChooseKvBytes, TakesBytesAsGiven) {
  EXPECT_EQ(*ChooseKvBytes(Needs({40 * kMiB, 0}), 64 * kMiB, kMiB), 40 * kMiB);
}

TEST(ChooseKvBytes, RefusesBytesThatAreNotFree) {
  const absl::Status status = ChooseKvBytes(Needs({80 * kMiB, 0}), 64 * kMiB, kMiB).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Message(status),
              HasSubstr("80.0 MiB for a rank; must be at most 64.0 MiB, what is free for rank 1"));
}

TEST(ChooseKvBytes, TakesAShareOfTheFreeMemory) {
  EXPECT_EQ(*ChooseKvBytes(Needs({0, 0.25}), 64 * kMiB, kMiB), 16 * kMiB);
}

TEST(ChooseKvBytes, AutoIsTheWantedSizeButAtMostHalfForAllRanks) {
  EXPECT_EQ(*ChooseKvBytes(Needs({}), 64 * kMiB, kMiB), kMiB);
  EXPECT_EQ(*ChooseKvBytes(Needs({}), 64 * kMiB, 100 * kMiB), 16 * kMiB);
}

TEST(DescribeMemoryPlan, NamesEveryPart) {
  const auto plan = DescribeMemoryPlan(Needs({0, 0.5}), 320 * kMiB);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(*plan,
            "memory plan of rank 1: weights 100.0 MiB, scratch 20.0 MiB for steps of 512 tokens, "
            "KV cache 100.0 MiB; this takes 220.0 MiB of 320.0 MiB free");
}

TEST(DescribeMemoryPlan, NamesTheLimit) {
  MemoryNeeds needs = Needs({0, 0.5});
  needs.limit = "ulimit -v";
  EXPECT_THAT(*DescribeMemoryPlan(needs, 320 * kMiB),
              HasSubstr("320.0 MiB free (limit: ulimit -v)"));
  EXPECT_THAT(Message(DescribeMemoryPlan(needs, kMiB).status()), HasSubstr("(limit: ulimit -v)"));
}

TEST(DescribeMemoryPlan, RefusesAPlanThatDoesNotFit) {
  for (const KvMemory kv : {KvMemory{}, KvMemory{1, 0}}) {
    const absl::Status status = DescribeMemoryPlan(Needs(kv), 119 * kMiB).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    EXPECT_THAT(Message(status), HasSubstr("weights 100.0 MiB"));
  }
  EXPECT_FALSE(DescribeMemoryPlan(Needs({201 * kMiB, 0}), 320 * kMiB).ok());
}

TEST(ScratchBytes, CountsBuffersByRowAndLogitsSeparately) {
  Program program;
  program.vocabulary = 1000;
  program.widths[static_cast<std::size_t>(Buffer::kHidden)] = 8;
  program.widths[static_cast<std::size_t>(Buffer::kQkv)] = 24;
  program.widths[static_cast<std::size_t>(Buffer::kLogits)] = 500;
  EXPECT_EQ(ScratchBytes(program, 10, 4, 2), (32u * 10 + 500u * 4) * 2 + 1000u * 4 * 4);
}

TEST(HumanBytes, ChoosesTheUnit) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(std::uint64_t{3} << 30), "3.0 GiB");
}

TEST(CachePlan, HoldsAStateForEachSequence) {
  constexpr std::uint64_t kBlock = 2048, kState = 4096;
  const PagedLayout layout{UniformCaches(2, 1, 8), 16, DType::kFloat32};
  const CachePlan plan(layout, StatePlan{kState, 3});
  v1::Limits limits;
  limits.set_max_sequences(3);
  limits.set_max_sequence_length(32);
  EXPECT_EQ(plan.WantedBytes(limits), 3 * (2 * kBlock + kState));
  const auto pool = plan.Fit(3 * kState + 5 * kBlock + 1, limits);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->blocks[0], 5u);
  EXPECT_EQ(plan.Bytes(*pool), 3 * kState + 5 * kBlock);
  EXPECT_EQ(plan.Describe(*pool),
            "5 blocks of 16 tokens, states of 3 sequences of 4.0 KiB each, 22.0 KiB");
  EXPECT_THAT(Message(plan.Fit(3 * kState, limits).status()),
              HasSubstr("one block of 2.0 KiB, and 12.0 KiB for the states of 3 sequences "
                        "(--max-batch-size bounds them)"));
}

TEST(CachePlan, SnapshotsTakeAQuarterOfWhatStatesLeave) {
  constexpr std::uint64_t kState = 4096;
  const PagedLayout layout{UniformCaches(2, 1, 8), 16, DType::kFloat32};
  const std::uint64_t block = layout.BytesPerBlock();
  const CachePlan plan(layout, StatePlan{kState, 3, 0, 5});
  v1::Limits limits;
  limits.set_max_sequences(3);
  limits.set_max_sequence_length(32);
  const auto few = plan.Fit(3 * kState + 8 * kState, limits);
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_EQ(few->snapshots, 2u);
  EXPECT_EQ(few->blocks[0], 6 * kState / block);
  EXPECT_EQ(plan.Bytes(*few), 11 * kState);
  EXPECT_THAT(plan.Describe(*few), HasSubstr("states of 3 sequences and 2 snapshots of 4.0 KiB"));
  const auto all = plan.Fit(100 * kState, limits);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->snapshots, 5u);
  EXPECT_EQ(plan.WantedBytes(limits), 3 * kState + 6 * block + 6 * block / 3);
}

TEST(CachePlan, HoldsAStateForEachDraft) {
  constexpr std::uint64_t kState = 4096;
  const PagedLayout layout{UniformCaches(2, 1, 8), 16, DType::kFloat32};
  const CachePlan plan(layout, StatePlan{kState, 3, 2});
  v1::Limits limits;
  limits.set_max_sequences(3);
  limits.set_max_sequence_length(32);
  const auto pool = plan.Fit(5 * kState + layout.BytesPerBlock(), limits);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->blocks[0], 1u);
  EXPECT_EQ(plan.Bytes(*pool), 5 * kState + layout.BytesPerBlock());
  EXPECT_THAT(plan.Describe(*pool),
              HasSubstr("states of 3 sequences and 2 drafts of 4.0 KiB each"));
}

// Blocks of 16 tokens: 2 KiB of a layer that keeps every position, 4 KiB of two with a window.
PagedLayout TwoGroups() {
  PagedLayout layout{UniformCaches(3, 1, 16), 16, DType::kFloat32};
  layout.caches[1].kv_group = layout.caches[2].kv_group = 1;
  return layout;
}
constexpr std::uint64_t kFull = 2048, kWindows = 4096;
constexpr std::uint32_t kWindow = 100;

v1::Limits LimitsOf(std::uint32_t sequences, std::uint32_t length) {
  v1::Limits limits;
  limits.set_max_sequences(sequences);
  limits.set_max_sequence_length(length);
  limits.set_max_step_tokens(60);
  limits.set_max_decode_rows(1);
  return limits;
}

TEST(MostWindowBlocks, AreThoseOfTheWindowAndAStep) {
  // 160 tokens are 10 blocks; their first may be in the middle of a block.
  EXPECT_EQ(MostWindowBlocks(TwoGroups(), kWindow, LimitsOf(4, 3200)), 11u);
  EXPECT_EQ(MostWindowBlocks(TwoGroups(), kWindow, LimitsOf(4, 64)), 4u) << "the longest sequence";
}

TEST(CachePlan, GivesLayersWithAWindowWhatTheirWindowsNeed) {
  const CachePlan plan(TwoGroups(), {}, kWindow);
  const v1::Limits limits = LimitsOf(4, 3200);
  EXPECT_EQ(plan.WantedBytes(limits), 4 * 200 * kFull + 4 * 11 * kWindows);
  const std::uint64_t bytes = 44 * kWindows + 300 * kFull;
  const auto pool = plan.Fit(bytes + kFull - 1, limits);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->blocks, KvBlocks(300, 44));
  EXPECT_EQ(plan.Bytes(*pool), bytes);
  EXPECT_EQ(plan.LongestSequence(*pool, limits), 3200u);
  EXPECT_THAT(plan.Describe(*pool),
              HasSubstr("300 blocks of 16 tokens, 44 for layers with a window, "));
}

TEST(CachePlan, GivesAllLayersAsManyBlocksWhereMemoryIsScarce) {
  const CachePlan plan(TwoGroups(), {}, kWindow);
  const v1::Limits limits = LimitsOf(4, 3200);
  const auto pool = plan.Fit(5 * (kFull + kWindows) + kFull, limits);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->blocks, KvBlocks(5, 5));
  EXPECT_EQ(plan.LongestSequence(*pool, limits), 80u);
  EXPECT_FALSE(plan.Fit(kFull + kWindows - 1, limits).ok());
}

TEST(CachePlan, GivesAllLayersAsManyBlocksIfTheDriverHasOneTable) {
  const CachePlan plan(TwoGroups());
  const v1::Limits limits = LimitsOf(4, 3200);
  EXPECT_EQ(plan.WantedBytes(limits), 4 * 200 * (kFull + kWindows));
  EXPECT_EQ(plan.Fit(70 * (kFull + kWindows), limits)->blocks, KvBlocks(70, 70));
}

TEST(CachePlan, CountsBlocksWithoutMemoryIfAllLayersHaveAWindow) {
  PagedLayout layout = TwoGroups();
  layout.caches[0].kv_group = 1;
  const CachePlan plan(layout, {}, kWindow);
  const v1::Limits limits = LimitsOf(4, 3200);
  EXPECT_EQ(plan.WantedBytes(limits), 44 * (kFull + kWindows));
  const auto pool = plan.Fit(50 * (kFull + kWindows), limits);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->blocks, KvBlocks(800, 50));
  EXPECT_EQ(plan.Bytes(*pool), 50 * (kFull + kWindows));
  EXPECT_EQ(plan.LongestSequence(*plan.Fit(6 * (kFull + kWindows), limits), limits), 96u);
}

TEST(DescribeMemoryPlan, NamesTheKvGroupsAndLatents) {
  MemoryNeeds needs = Needs({0, 0.5});
  needs.kv_bytes_per_token = 4096;
  needs.latent_bytes_per_token = 1024;
  needs.window = 512;
  needs.window_bytes_per_token = 2048;
  needs.window_bytes = 3 * kMiB;
  EXPECT_THAT(*DescribeMemoryPlan(needs, 320 * kMiB),
              HasSubstr("(4.0 KiB per token, 1.0 KiB of it latents and RoPE keys; layers with a "
                        "window of 512: 2.0 KiB per token, at most 3.0 MiB per sequence)"));
  needs.kv_bytes_per_token = needs.latent_bytes_per_token = 0;
  EXPECT_THAT(*DescribeMemoryPlan(needs, 320 * kMiB),
              HasSubstr("(layers with a window of 512: 2.0 KiB per token"));
}

TEST(DescribeMemoryPlan, NamesTheStatesOfASequence) {
  MemoryNeeds needs = Needs({0, 0.5});
  needs.kv_bytes_per_token = 2048;
  needs.state_bytes = 75 * kMiB;
  EXPECT_THAT(*DescribeMemoryPlan(needs, 320 * kMiB),
              HasSubstr("(2.0 KiB per token; 75.0 MiB of states per sequence)"));
}

}  // namespace
}  // namespace penstock::shard
