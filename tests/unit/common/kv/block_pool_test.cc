#include "common/kv/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace penstock {
namespace {

void ExpectCounts(const BlockPool& pool, std::uint32_t free, std::uint32_t used,
                  std::uint32_t cached, std::uint32_t retiring) {
  EXPECT_EQ(pool.free(), free);
  EXPECT_EQ(pool.used(), used);
  EXPECT_EQ(pool.cached(), cached);
  EXPECT_EQ(pool.retiring(), retiring);
  EXPECT_EQ(free + used + cached + retiring, pool.total());
}

TEST(BlockPool, ReservedBlocksCannotBeReservedAgain) {
  BlockPool pool(4);
  EXPECT_TRUE(pool.Reserve(3));
  EXPECT_FALSE(pool.Reserve(2));
  EXPECT_TRUE(pool.Allocate().has_value());
  EXPECT_FALSE(pool.Allocate().has_value()) << "the rest is promised";
  for (int i = 0; i < 3; ++i) pool.AllocateReserved();
  ExpectCounts(pool, 0, 4, 0, 0);
}

TEST(BlockPool, BlockZeroCanBeLeftOut) {
  BlockPool pool(2, BlockId(1));
  EXPECT_EQ(pool.Allocate(), BlockId(1));
  EXPECT_EQ(pool.Allocate(), BlockId(2));
  EXPECT_EQ(pool.Allocate(), std::nullopt);
}

TEST(BlockPool, TheLastHolderFreesABlock) {
  BlockPool pool(2);
  const BlockId block = *pool.Allocate();
  pool.AddHolder(block);
  pool.Release(block);
  ExpectCounts(pool, 1, 1, 0, 0);
  pool.Release(block);
  ExpectCounts(pool, 2, 0, 0, 0);
}

TEST(BlockPool, ARetiredBlockIsNotFreeBeforeItIsReclaimed) {
  BlockPool pool(1);
  const BlockId block = *pool.Allocate();
  pool.Retire(block);
  ExpectCounts(pool, 0, 0, 0, 1);
  EXPECT_EQ(pool.Allocate(), std::nullopt);
  pool.Reclaim(block);
  ExpectCounts(pool, 1, 0, 0, 0);
}

TEST(BlockPool, ASharedBlockStaysUsedWhileOneHolderLives) {
  BlockPool pool(1);
  const BlockId block = *pool.Allocate();
  pool.AddHolder(block);
  pool.Retire(block);
  ExpectCounts(pool, 0, 1, 0, 0);
  pool.Release(block);
  ExpectCounts(pool, 0, 0, 0, 1);
  pool.Reclaim(block);
  ExpectCounts(pool, 1, 0, 0, 0);
}

TEST(BlockPool, ACachedBlockComesBackToUseOrIsEvicted) {
  BlockPool pool(2);
  const BlockId first = *pool.Allocate();
  const BlockId second = *pool.Allocate();
  for (const BlockId block : {first, second}) {
    pool.Retire(block);
    pool.Reclaim(block, /*to_cache=*/true);
  }
  ExpectCounts(pool, 0, 0, 2, 0);
  pool.AddHolder(first);
  pool.Evict(second);
  ExpectCounts(pool, 1, 1, 0, 0);
}

TEST(BlockPoolDeathTest, MisuseStopsTheProcess) {
  BlockPool pool(2);
  const BlockId block = *pool.Allocate();
  pool.Release(block);
  EXPECT_DEATH(pool.Release(block), "released by a live holder");
  EXPECT_DEATH(pool.AddHolder(block), "taken by Allocate only");
  EXPECT_DEATH(pool.AllocateReserved(), "drawn from a reservation");
  EXPECT_DEATH(pool.Release(BlockId(9)), "in range");
}

// Random legal use against a model that keeps the holders of each block in a map.
TEST(BlockPool, CountsMatchAModelUnderRandomUse) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    BlockPool pool(8);
    struct Model {
      int live = 0;
      int retired = 0;
      bool cached = false;
    };
    std::map<BlockId, Model> model;
    for (int i = 0; i < 2000; ++i) {
      const BlockId id(static_cast<std::uint32_t>(random() % 8));
      Model& block = model[id];
      switch (random() % 7) {
        case 0:
          if (const auto taken = pool.Allocate()) model[*taken] = {1, 0, false};
          break;
        case 1:
          if (block.live + block.retired == 0 && !block.cached) break;
          pool.AddHolder(id);
          ++block.live;
          block.cached = false;
          break;
        case 2:
          if (block.live == 0) break;
          pool.Release(id);
          --block.live;
          break;
        case 3:
          if (block.retired == 0) break;
          pool.Reclaim(id, /*to_cache=*/true);
          block.cached = block.live + --block.retired == 0;
          break;
        case 4:
          if (!block.cached) break;
          pool.Evict(id);
          block.cached = false;
          break;
        case 5:
          if (block.live == 0) break;
          pool.Retire(id);
          --block.live;
          ++block.retired;
          break;
        default:
          if (block.retired == 0) break;
          pool.Reclaim(id);
          --block.retired;
      }
      std::uint32_t used = 0, retiring = 0, cached = 0;
      for (const auto& [unused, b] : model) {
        used += b.live > 0;
        retiring += b.live == 0 && b.retired > 0;
        cached += b.cached;
      }
      ASSERT_EQ(pool.used(), used);
      ASSERT_EQ(pool.retiring(), retiring);
      ASSERT_EQ(pool.cached(), cached);
      ASSERT_EQ(pool.free(), 8 - used - retiring - cached);
    }
  }
}

}  // namespace
}  // namespace penstock
