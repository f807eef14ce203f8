#include "shard/backend/cpu/threads/thread_spread.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "shard/backend/cpu/threads/numa.h"

namespace penstock::shard::cpu {
namespace {

// Another thread of the pool slept on this processor last.
void SleepOn(ThreadSpread& spread, std::uint32_t thread, std::uint32_t cpu) {
  std::thread([&] {
    KeepThisThreadOn({cpu});
    EXPECT_FALSE(spread.AfterSleep(thread));
  }).join();
}

// The kernel may move this thread before it does so itself; then it is tried again.
TEST(ThreadSpread, WhoKeepsMeetingAnotherLeavesAndIsTiedToNoProcessor) {
  const std::vector<std::uint32_t> cpus = CpusOfThisThread();
  if (cpus.size() < 2) GTEST_SKIP() << "needs two processors";
  ThreadSpread spread(3);
  SleepOn(spread, 2, cpus[0]);
  bool left = false;
  for (int i = 0; i < 100 && !left; ++i) {
    KeepThisThreadOn({cpus[0]});
    EXPECT_FALSE(spread.AfterSleep(1)) << "one meeting is none";
    spread.AfterSleep(1);
    KeepThisThreadOn(cpus);
    left = spread.AfterSleep(1);
  }
  EXPECT_TRUE(left);
  EXPECT_EQ(CpusOfThisThread(), cpus);
}

// Whoever confined the threads, with taskset or an affinity of its own, is obeyed after a move.
TEST(ThreadSpread, AMoveLeavesAConfinementAsItWas) {
  const std::vector<std::uint32_t> cpus = CpusOfThisThread();
  if (cpus.size() < 3) GTEST_SKIP() << "needs three processors, two of them to be confined to";
  const std::vector<std::uint32_t> two = {cpus[0], cpus[1]};
  ThreadSpread spread(2);
  SleepOn(spread, 0, cpus[0]);
  bool left = false;
  for (int i = 0; i < 100 && !left; ++i) {
    KeepThisThreadOn({cpus[0]});
    spread.AfterSleep(1);
    spread.AfterSleep(1);
    KeepThisThreadOn(two);
    left = spread.AfterSleep(1);
  }
  EXPECT_TRUE(left);
  EXPECT_EQ(CpusOfThisThread(), two);
  KeepThisThreadOn(cpus);
}

TEST(ThreadSpread, WithoutAFreeProcessorAllStay) {
  const std::vector<std::uint32_t> cpus = CpusOfThisThread();
  ThreadSpread spread(2);
  SleepOn(spread, 0, cpus[0]);
  KeepThisThreadOn({cpus[0]});
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(spread.AfterSleep(1));
  KeepThisThreadOn(cpus);
}

}  // namespace
}  // namespace penstock::shard::cpu
