#include "shard/backend/cpu/cache/kv_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/backend/cpu/cache/prefault.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::uint32_t kBlocks = 600;
constexpr std::uint32_t kSpare = 5;

// 16 KiB per block of a plane, so that a plane is some units long.
PagedLayout Layout() {
  PagedLayout layout{UniformCaches(3, 2, 128), 16, DType::kFloat32};
  layout.hidden = 32;
  return layout;
}

std::size_t PagesMissing(const std::byte* from, std::size_t bytes) {
  constexpr std::uintptr_t kPage = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(from) / kPage * kPage;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(from) + bytes;
  std::vector<unsigned char> there((end - begin + kPage - 1) / kPage);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), end - begin, there.data()), 0);
  std::size_t missing = 0;
  for (unsigned char page : there) missing += (page & 1) == 0;
  return missing;
}

// Pages without memory among blocks [first, first + count) of every plane.
std::size_t BlocksMissing(const KvCache& cache, std::size_t first, std::size_t count) {
  std::size_t missing = 0;
  const std::vector<CacheShape> caches = Layout().caches;
  for (std::size_t index = 0; index < caches.size(); ++index) {
    for (std::size_t i = 0; i < caches[index].kv_heads; ++i) {
      const HeadCache head = cache.Head(index, i);
      missing += PagesMissing(head.base + first * head.block_bytes, count * head.block_bytes);
    }
  }
  const HeadCache hidden = cache.Hidden();
  return missing +
         PagesMissing(hidden.base + first * hidden.block_bytes, count * hidden.block_bytes);
}

TEST(KvCache, IsPreFaultedWhenAllocated) {
  WorkerPool pool(2);
  KvCache cache;
  ASSERT_TRUE(cache.Allocate(Layout(), kBlocks, kSpare, pool).ok());
  EXPECT_EQ(BlocksMissing(cache, 0, kBlocks + kSpare), 0u);
}

TEST(KvCache, PreFaultsSpareAndFirstBlocksIfNotAll) {
  WorkerPool pool(2);
  KvCache cache;
  constexpr std::size_t kBytes = std::size_t{20} << 20;
  ASSERT_TRUE(cache.Allocate(Layout(), kBlocks, kSpare, pool, kBytes).ok());
  const std::size_t first = kBytes / (cache.MemoryBytes() / (kBlocks + kSpare));
  ASSERT_GT(first, 50u);
  EXPECT_EQ(BlocksMissing(cache, 0, first), 0u);
  EXPECT_EQ(BlocksMissing(cache, kBlocks, kSpare), 0u);
  EXPECT_GT(BlocksMissing(cache, first, kBlocks - first), 0u);
}

TEST(KvCache, PreFaultsTheFirstBlocksOfPaddedKvRowsToo) {
  WorkerPool pool(2);
  KvCache cache;
  constexpr std::size_t kBytes = std::size_t{2} << 20;
  constexpr std::uint32_t kRowBlocks = kBlocks / 2;
  ASSERT_TRUE(cache.Allocate(Layout(), kBlocks, kSpare, pool, kBytes, kRowBlocks).ok());
  const std::size_t first = kBytes / (cache.MemoryBytes() / (kBlocks + kSpare));
  ASSERT_LT(first, kRowBlocks / 2);
  EXPECT_EQ(BlocksMissing(cache, 0, first), 0u);
  EXPECT_EQ(BlocksMissing(cache, kBlocks - kRowBlocks, first), 0u);
  EXPECT_EQ(BlocksMissing(cache, kBlocks, kSpare), 0u);
  EXPECT_GT(BlocksMissing(cache, first, kBlocks - kRowBlocks - first), 0u);
  EXPECT_GT(BlocksMissing(cache, kBlocks - kRowBlocks + first, kRowBlocks - first), 0u);
}

TEST(KvCache, BlocksOfAHeadFollowEachOther) {
  WorkerPool pool(1);
  KvCache cache;
  ASSERT_TRUE(cache.Allocate(Layout(), kBlocks, kSpare, pool).ok());
  const std::size_t plane = (kBlocks + kSpare) * cache.Head(0, 0).block_bytes;
  EXPECT_EQ(cache.Head(0, 0).block_bytes, 2 * cache.Head(0, 0).value_offset);
  for (std::size_t i = 1; i < 6; ++i) {
    const HeadCache head = cache.Head(i / 2, i % 2);
    EXPECT_EQ(static_cast<std::size_t>(head.base - cache.Head(0, 0).base), i * plane);
  }
}

TEST(KvCache, ShapesMayDiffer) {
  WorkerPool pool(1);
  KvCache cache;
  const PagedLayout layout{{{2, 8, 8}, {1, 16, 4}}, 16, DType::kFloat32};
  ASSERT_TRUE(cache.Allocate(layout, 3, 1, pool).ok());
  const HeadCache narrow = cache.Head(0, 1), wide = cache.Head(1, 0);
  EXPECT_EQ(narrow.block_bytes, 16u * (8 + 8) * 4);
  EXPECT_EQ(wide.block_bytes, 16u * (16 + 4) * 4);
  EXPECT_EQ(wide.value_offset, 16u * 16 * 4);
  EXPECT_EQ(wide.value_dim, 4u);
  EXPECT_EQ(static_cast<std::size_t>(wide.base - narrow.base), 4 * narrow.block_bytes);
  EXPECT_EQ(layout.BytesPerToken(), (2 * 16 + 20) * 4u);
}

TEST(Prefault, ChangesNoByteOfAShortLastUnit) {
  std::vector<std::byte> memory(kPrefaultUnit + 5000, std::byte{7});
  ASSERT_EQ(PrefaultUnits(memory.size()), 2u);
  PrefaultUnit(memory, 0);
  PrefaultUnit(memory, 1);
  EXPECT_EQ(memory, std::vector<std::byte>(memory.size(), std::byte{7}));
}

}  // namespace
}  // namespace penstock::shard::cpu
