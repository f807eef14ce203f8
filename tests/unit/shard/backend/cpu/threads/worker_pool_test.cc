#include "shard/backend/cpu/threads/worker_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <string>
#include <vector>

#include "shard/backend/cpu/threads/shared_work.h"
#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {
namespace {

class Pools : public testing::TestWithParam<std::uint32_t> {
 protected:
  // Barriers of many threads on few cores take long.
  static int Rounds() { return GetParam() > 8 ? 10 : 100; }
};

TEST_P(Pools, EveryThreadRunsEachRegionOnce) {
  WorkerPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  std::vector<int> runs(pool.threads(), 0);
  for (int region = 0; region < Rounds(); ++region) {
    pool.Run([&](std::uint32_t thread) { ++runs[thread]; });
    for (int count : runs) ASSERT_EQ(count, region + 1);
  }
}

// Each thread reads what its neighbour wrote before the barrier.
TEST_P(Pools, WritesBeforeABarrierAreVisibleAfterIt) {
  WorkerPool pool(GetParam());
  std::vector<int> values(pool.threads(), 0);
  std::atomic<int> wrong = 0;
  pool.Run([&](std::uint32_t thread) {
    for (int round = 1; round <= Rounds(); ++round) {
      values[thread] = round;
      pool.Barrier();
      if (values[(thread + 1) % pool.threads()] != round) ++wrong;
      pool.Barrier();
    }
  });
  EXPECT_EQ(wrong, 0);
}

// More threads than cores is what a busy machine looks like.
INSTANTIATE_TEST_SUITE_P(Threads, Pools, testing::Values(1u, 2u, 3u, 8u, 65u));

// Longer than the spin: the sleepers are woken.
TEST(WorkerPool, ThreadsSleepWhileTheyWaitLong) {
  WorkerPool pool(3);
  std::mutex mutex;
  std::condition_variable never;
  std::atomic<int> done = 0;
  for (int i = 0; i < 5; ++i) {
    pool.Run([&](std::uint32_t thread) {
      if (thread == 2) {
        std::unique_lock lock(mutex);
        never.wait_for(lock, std::chrono::milliseconds(2), [] { return false; });
      }
      pool.Barrier();
      ++done;
    });
  }
  EXPECT_EQ(done, 15);
}

TEST(WorkerPool, AnIdlePoolTakesNoProcessorTime) {
  WorkerPool pool(4);
  pool.Run([](std::uint32_t) {});
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, std::chrono::milliseconds(5), [] { return false; });  // spins are over
  const std::clock_t before = std::clock();
  never.wait_for(lock, std::chrono::milliseconds(50), [] { return false; });
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.005);
}

TEST(WorkSplit, SharesCoverEverythingAndDifferByOne) {
  for (std::size_t total : {0u, 1u, 7u, 36u, 1000u}) {
    for (std::size_t parts : {1u, 2u, 3u, 8u, 64u}) {
      std::size_t next = 0;
      for (std::size_t i = 0; i < parts; ++i) {
        const Share share = EvenShare(total, parts, i);
        EXPECT_EQ(share.first, next);
        EXPECT_GE(share.count, total / parts);
        EXPECT_LE(share.count, total / parts + 1);
        next += share.count;
      }
      EXPECT_EQ(next, total);
    }
  }
}

void ExpectEvenGrid(std::size_t tiles, std::size_t units, std::size_t threads) {
  SCOPED_TRACE(std::to_string(tiles) + " x " + std::to_string(units) + " on " +
               std::to_string(threads));
  std::vector<int> cells(tiles * units, 0);
  std::size_t heaviest = 0;
  for (std::size_t t = 0; t < threads; ++t) {
    const GridShare share = SplitGrid(tiles, units, threads, t);
    heaviest = std::max(heaviest, share.rows.count * share.columns.count);
    for (std::size_t i = 0; i < share.rows.count * share.columns.count; ++i) {
      const std::size_t row = share.rows.first + i / share.columns.count;
      ++cells[row * units + share.columns.first + i % share.columns.count];
    }
  }
  for (int count : cells) ASSERT_EQ(count, 1);
  // Never worse than dividing columns alone; with room for all, within a third of even.
  EXPECT_LE(heaviest, tiles * ((units + threads - 1) / threads));
  if (units < 12 * threads) return;
  EXPECT_LE(heaviest * threads, tiles * units * 4 / 3);
}

TEST(WorkSplit, GridsCoverEveryCellOnceAndAreEven) {
  for (std::size_t threads : {1u, 2u, 3u, 8u, 64u}) {
    for (std::size_t tiles : {1u, 2u, 22u, 86u}) {
      for (std::size_t units : {1u, 12u, 36u, 500u}) ExpectEvenGrid(tiles, units, threads);
    }
  }
}

// Thread 0 alone, the others late: it does its own share in order, then theirs.
TEST(SharedWork, AFinishedThreadTakesWorkOfItsPeersOnly) {
  constexpr std::size_t kGrain = 4;
  SharedWork work(4);
  for (std::size_t t = 0; t < 4; ++t) work.Begin(t, {t * 25, 25});
  std::vector<int> done(100, 0);
  std::size_t own = 0;
  for (Share part = work.Next(0, {0, 3}, kGrain); part.count > 0;
       part = work.Next(0, {0, 3}, kGrain)) {
    if (own < 25) {
      EXPECT_EQ(part.first, own);
      own += part.count;
    }
    EXPECT_TRUE(part.first % kGrain == 0 || part.first % 25 == 0) << part.first;
    for (std::size_t i = 0; i < part.count; ++i) ++done[part.first + i];
  }
  EXPECT_EQ(own, 25u);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(done[i], i < 75 ? 1 : 0) << i;
}

TEST_P(Pools, SharedWorkIsDoneOnce) {
  WorkerPool pool(GetParam());
  const std::size_t threads = pool.threads();
  SharedWork work(threads);
  constexpr std::size_t kItems = 24;  // of one thread: all take from it at once
  const int rounds = std::max(1, 4000 / static_cast<int>(threads * threads));
  std::vector<std::atomic<int>> done(kItems);
  std::atomic<int> wrong = 0;
  pool.Run([&](std::uint32_t thread) {
    for (int round = 1; round <= rounds; ++round) {
      work.Begin(thread, {0, thread == 0 ? kItems : 0});
      pool.Barrier();
      for (Share part = work.Next(thread, {0, threads}, 2); part.count > 0;
           part = work.Next(thread, {0, threads}, 2)) {
        for (std::size_t i = 0; i < part.count; ++i) ++done[part.first + i];
      }
      pool.Barrier();
      for (const std::atomic<int>& count : done) wrong += count != round;
      pool.Barrier();
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace penstock::shard::cpu
