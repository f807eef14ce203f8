#include "shard/backend/cpu/cache/kv_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "shard/backend/cpu/cache/first_touch.h"
#include "shard/weights/memory_region.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::uint32_t kBlocks = 600;
constexpr std::uint32_t kSpare = 5;

// 16 KiB per block of a plane, so that a plane is some units long.
PagedLayout Layout() {
  PagedLayout layout{3, 16, 2, 128, DType::kFloat32};
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

// Pages that are not in memory of blocks [first, first + count) of every plane.
std::size_t BlocksMissing(const KvCache& cache, std::size_t first, std::size_t count) {
  std::size_t missing = 0;
  for (std::size_t layer = 0; layer < Layout().layers; ++layer) {
    for (std::size_t i = 0; i < Layout().kv_heads; ++i) {
      const HeadCache head = cache.Head(layer, i);
      missing += PagesMissing(head.base + first * head.block_bytes, count * head.block_bytes);
    }
  }
  const HeadCache hidden = cache.Hidden();
  return missing +
         PagesMissing(hidden.base + first * hidden.block_bytes, count * hidden.block_bytes);
}

TEST(KvCache, IsInMemoryWhenAllocated) {
  WorkerPool pool(2);
  KvCache cache;
  ASSERT_TRUE(cache.Allocate(Layout(), kBlocks, kSpare, pool).ok());
  EXPECT_EQ(BlocksMissing(cache, 0, kBlocks + kSpare), 0u);
}

TEST(KvCache, SpareAndFirstBlocksAreInMemoryAtOnceAndTheOthersLater) {
  WorkerPool pool(2);
  KvCache cache;
  for (int round = 0; round < 3; ++round) {  // a new one ends the touching of the old one
    ASSERT_TRUE(cache.Allocate(Layout(), kBlocks, kSpare, pool, 1).ok());
    EXPECT_EQ(BlocksMissing(cache, 0, 128), 0u);
    EXPECT_EQ(BlocksMissing(cache, kBlocks, kSpare), 0u);
  }
  cache.AwaitTouch();
  EXPECT_EQ(BlocksMissing(cache, 0, kBlocks + kSpare), 0u);
}

TEST(KvCache, BlocksOfAHeadFollowEachOther) {
  WorkerPool pool(1);
  KvCache cache;
  ASSERT_TRUE(cache.Allocate(Layout(), kBlocks, kSpare, pool).ok());
  const std::size_t plane = (kBlocks + kSpare) * cache.Head(0, 0).block_bytes;
  EXPECT_EQ(cache.Head(0, 0).block_bytes, 2 * cache.Head(0, 0).value_offset);
  for (std::size_t i = 1; i < std::size_t{Layout().layers} * Layout().kv_heads; ++i) {
    const HeadCache head = cache.Head(i / Layout().kv_heads, i % Layout().kv_heads);
    EXPECT_EQ(static_cast<std::size_t>(head.base - cache.Head(0, 0).base), i * plane);
  }
}

TEST(KvCache, KeepsWhatIsWrittenWhileTheRestIsTouched) {
  WorkerPool pool(1);
  KvCache cache;
  ASSERT_TRUE(cache.Allocate(Layout(), kBlocks, 0, pool, 1).ok());
  const HeadCache head = cache.Head(1, 0);
  const auto word = [&](std::size_t block) {
    return const_cast<std::byte*>(head.base) + block * head.block_bytes;
  };
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    std::memcpy(word(block), &block, sizeof block);
  }
  cache.AwaitTouch();
  std::size_t wrong = 0;
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    std::uint64_t read[2] = {};
    std::memcpy(read, word(block), sizeof read);
    wrong += read[0] != block || read[1] != 0;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(FirstTouch, BesideStepsTouchesOnlyWhatTheyMayUse) {
  constexpr std::size_t kUnits = 16;
  constexpr std::size_t kWanted = 6;
  std::vector<std::uint32_t> units(kUnits);
  std::iota(units.begin(), units.end(), 0u);
  const auto touch_another = [&] {
    auto region = MemoryRegion::Allocate(kUnits * kTouchUnit);
    ASSERT_TRUE(region.ok());
    FirstTouch({region->data(), region->bytes()}, units).Await();
  };
  auto region = MemoryRegion::Allocate(kUnits * kTouchUnit);
  ASSERT_TRUE(region.ok());
  FirstTouch touch({region->data(), region->bytes()}, units);
  touch.StepBegins(kWanted);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (PagesMissing(region->data(), kWanted * kTouchUnit) > 0 &&
         std::chrono::steady_clock::now() < deadline) {
    touch_another();  // takes its turns of the processor as that does
  }
  EXPECT_EQ(PagesMissing(region->data(), kWanted * kTouchUnit), 0u);
  touch_another();  // long enough for all of it
  touch_another();
  EXPECT_GT(PagesMissing(region->data(), region->bytes()), 0u);
  touch.StepEnds();
  touch.Await();
  EXPECT_EQ(PagesMissing(region->data(), region->bytes()), 0u);
}

TEST(FirstTouch, AUnitMayBeShortAndItsBytesStay) {
  std::vector<std::byte> memory(kTouchUnit + 5000, std::byte{7});
  ASSERT_EQ(TouchUnits(memory.size()), 2u);
  TouchUnit(memory, 0);
  TouchUnit(memory, 1);
  EXPECT_EQ(memory, std::vector<std::byte>(memory.size(), std::byte{7}));
}

}  // namespace
}  // namespace penstock::shard::cpu
