#include "shard/backend/cpu/attention/kv_prefetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

#include "shard/backend/cpu/threads/worker_pool.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::uint32_t kBlock = 16;
constexpr std::uint32_t kHeads = 2;
constexpr std::size_t kLayer = 1;
constexpr std::size_t kPartitionBlocks = kPartition / kBlock;

using Block = std::pair<const std::byte*, std::uint32_t>;  // the head's base and the number

// A step with one token for each of some sequences.
class Step {
 public:
  Step(const std::vector<std::uint32_t>& contexts, std::size_t window, std::size_t threads) {
    WorkerPool pool(1);
    EXPECT_TRUE(
        cache_.Allocate({UniformCaches(2, kHeads, 4), kBlock, DType::kFloat32}, 100, 0, pool).ok());
    std::vector<RaggedSegment> segments;
    for (std::uint32_t context : contexts) {
      RaggedSegment segment;
      segment.query_start = static_cast<std::uint32_t>(segments.size());
      segment.query_count = 1;
      segment.context_length = context;
      segments.push_back(segment);
      table_starts_.push_back(tables_.size());
      for (std::uint32_t i = 0; i <= context / kBlock; ++i) {
        tables_.push_back(static_cast<std::uint32_t>(tables_.size() * 37 % 100));
      }
    }
    plan_.Build({.kv_heads = kHeads, .group = 4, .window = window, .threads = threads, .slots = 64},
                segments);
  }

  KvPrefetch PrefetchOf(std::size_t thread) const {
    return {plan_,
            cache_,
            kLayer,
            tables_.data(),
            table_starts_.data(),
            plan_.Begin(thread),
            plan_.Begin(thread + 1)};
  }

  // The blocks that a thread reads, by partition.
  std::vector<std::vector<Block>> Reads(std::size_t thread) const {
    std::vector<std::vector<Block>> reads;
    const AttentionCursor end = plan_.Begin(thread + 1);
    AttentionCursor at = plan_.Begin(thread);
    while (at.item < end.item || (at.item == end.item && at.partition < end.partition)) {
      const TokenTile& tile = plan_.Tile(at.item);
      const auto positions = plan_.PositionsOf(tile, tile.first_partition + at.partition);
      reads.emplace_back();
      for (std::size_t b = positions.first / kBlock; b * kBlock < positions.end; ++b) {
        reads.back().emplace_back(cache_.Head(kLayer, plan_.Head(at.item)).base,
                                  tables_[table_starts_[tile.segment] + b]);
      }
      if (++at.partition == tile.end_partition - tile.first_partition) at = {at.item + 1, 0};
    }
    return reads;
  }

 private:
  KvCache cache_;
  std::vector<std::uint32_t> tables_;
  std::vector<std::size_t> table_starts_;
  AttentionPlan plan_;
};

void Append(std::span<const BlockRun> runs, std::vector<Block>& given) {
  for (const BlockRun& run : runs) {
    for (std::size_t i = 0; i < run.count; ++i) given.emplace_back(run.base, run.blocks[i]);
  }
}

TEST(KvPrefetch, GivesAllBlocksAfterTheFirstPartitionOnceAndInOrder) {
  const Step step({700, 1024, 300, 511}, 0, 2);
  for (std::size_t thread = 0; thread < 2; ++thread) {
    KvPrefetch prefetch = step.PrefetchOf(thread);
    std::vector<Block> given, expected;
    const auto reads = step.Reads(thread);
    ASSERT_GT(reads.size(), 4u);
    for (std::size_t i = 0; i < reads.size(); ++i) {
      Append(prefetch.Next(), given);
      if (i > 0) expected.insert(expected.end(), reads[i].begin(), reads[i].end());
    }
    EXPECT_EQ(given, expected);
    EXPECT_TRUE(prefetch.Next().empty());
  }
}

// A sequence of 1,025 positions ends with a partition of one position. There is no time to prefetch
// a whole partition while that one is computed.
TEST(KvPrefetch, PrefetchesAWholePartitionBeforeAShortOne) {
  const Step step({1024, 1024, 1024}, 0, 1);
  KvPrefetch prefetch = step.PrefetchOf(0);
  std::vector<Block> given;
  std::size_t read = 0;
  const auto reads = step.Reads(0);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (i > 0) {
      EXPECT_GE(reads[0].size() + given.size(), read + reads[i].size()) << "partition " << i;
    }
    const std::span<const BlockRun> runs = prefetch.Next();
    std::size_t blocks = 0;
    for (const BlockRun& run : runs) blocks += run.count;
    EXPECT_LE(blocks, reads[i].size()) << "partition " << i;
    Append(runs, given);
    read += reads[i].size();
  }
}

TEST(KvPrefetch, GivesOnlyBlocksThatTheThreadHasYetToRead) {
  const std::uint32_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  const auto below = [&random](std::uint32_t n) { return random() % n; };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint32_t> contexts(1 + below(20));
    for (std::uint32_t& context : contexts) context = below(below(2) == 0 ? 40 : 1500);
    const std::size_t threads = 1 + below(4);
    const Step step(contexts, below(3) == 0 ? 1 + below(600) : 0, threads);
    for (std::size_t thread = 0; thread < threads; ++thread) {
      KvPrefetch prefetch = step.PrefetchOf(thread);
      const auto reads = step.Reads(thread);
      std::vector<Block> all;
      for (const auto& partition : reads) all.insert(all.end(), partition.begin(), partition.end());
      std::size_t next = 0, read = 0;  // of all
      for (const auto& partition : reads) {
        read += partition.size();
        std::vector<Block> given;
        Append(prefetch.Next(), given);
        next = std::max(next, read);
        for (const Block& block : given) {
          while (next < all.size() && all[next] != block) ++next;
          ASSERT_LT(next++, all.size());
        }
        ASSERT_LE(next, read + kPartitionBlocks);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
