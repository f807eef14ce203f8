#include "shard/backend/cpu/threads/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "shard/backend/cpu/threads/shared_work.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard::cpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Cpus = std::vector<std::uint32_t>;

Cpus UpTo(std::uint32_t count) {
  Cpus cpus(count);
  std::iota(cpus.begin(), cpus.end(), 0u);
  return cpus;
}

// A machine as the kernel shows it.
class Machine {
 public:
  explicit Machine(const std::string& online, const std::vector<std::string>& lists = {}) {
    folder_.Write("devices/system/node/online", online + "\n");
    for (std::size_t i = 0; i < lists.size(); ++i) {
      folder_.Write("devices/system/node/node" + std::to_string(i) + "/cpulist", lists[i] + "\n");
    }
  }
  std::vector<NumaNode> Nodes(const Cpus& allowed) const {
    return ReadNodes(folder_.path(), allowed);
  }

 private:
  TempFolder folder_;
};

TEST(CpuList, IsReadAsTheKernelWritesIt) {
  EXPECT_THAT(ParseCpuList("0-2,5"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(ParseCpuList("7\n"), ElementsAre(7));
  EXPECT_THAT(ParseCpuList(""), IsEmpty());
  EXPECT_THAT(ParseCpuList("x,3-,-1,2-1,4000000000,0-4000000000,6"), ElementsAre(6));
}

TEST(Nodes, AreThoseWithCpusThatTheProcessMayUse) {
  const Machine machine("0-3", {"0-3", "4-7", "", "8-11"});  // node 2 has memory only
  EXPECT_THAT(machine.Nodes(UpTo(12)),
              ElementsAre(NumaNode{0, {0, 1, 2, 3}}, NumaNode{1, {4, 5, 6, 7}},
                          NumaNode{3, {8, 9, 10, 11}}));
  EXPECT_THAT(machine.Nodes({3, 9, 11}), ElementsAre(NumaNode{0, {3}}, NumaNode{3, {9, 11}}));
  EXPECT_THAT(machine.Nodes({5}), ElementsAre(NumaNode{1, {5}}));
  EXPECT_THAT(machine.Nodes({}), IsEmpty());
}

// The numbers of hyperthreads follow those of all cores. Nodes that are offline have no number.
TEST(Nodes, MayHaveScatteredCpusAndMissingNumbers) {
  EXPECT_THAT(Machine("0-1", {"0-1,4-5", "2-3,6-7"}).Nodes({1, 2, 4, 7}),
              ElementsAre(NumaNode{0, {1, 4}}, NumaNode{1, {2, 7}}));
  EXPECT_THAT(Machine("0,2", {"0-1", "", "2-3"}).Nodes(UpTo(4)),
              ElementsAre(NumaNode{0, {0, 1}}, NumaNode{2, {2, 3}}));
}

TEST(Nodes, AreUnknownIfTheKernelDoesNotListThem) {
  const TempFolder folder;
  EXPECT_THAT(ReadNodes(folder.path(), UpTo(4)), IsEmpty());
}

TEST(ThreadPlacement, BindsNoThreadOnOneNode) {
  for (const Machine& machine : {Machine("0", {"0-15"}), Machine("0-1", {"0-15", ""})}) {
    const ThreadPlacement placement = PlaceThreads(machine.Nodes(UpTo(16)), 16, {});
    EXPECT_THAT(placement.of_thread, IsEmpty());
    EXPECT_EQ(placement.NodeCount(), 1u);
    EXPECT_EQ(placement.NodeOf(7), 0u);
    EXPECT_EQ(placement.Describe(), "");
  }
}

TEST(ThreadPlacement, SpreadsThreadsOverNodesByTheirCpus) {
  const auto two = Machine("0-1", {"0-3", "4-7"}).Nodes(UpTo(8));
  EXPECT_THAT(PlaceThreads(two, 8, {}).of_thread, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(PlaceThreads(two, 2, {}).of_thread, ElementsAre(0, 1));
  EXPECT_EQ(PlaceThreads(two, 8, {}).Describe(), "threads on NUMA nodes: 4 on 0, 4 on 1");
  const auto four = Machine("0-3", {"0-1", "2-3", "4-5", "6-7"}).Nodes({0, 1, 2, 6, 7});
  EXPECT_EQ(PlaceThreads(four, 5, {}).Describe(), "threads on NUMA nodes: 2 on 0, 1 on 1, 2 on 3");
  EXPECT_EQ(PlaceThreads(four, 10, {}).Describe(), "threads on NUMA nodes: 4 on 0, 2 on 1, 4 on 3");
  EXPECT_EQ(PlaceThreads(four, 1, {}).of_thread.size(), 1u);
}

// Ranks of tensor parallelism: each on a node of its own where there are as many.
TEST(ThreadPlacement, PoolsOfOneMachineDivideItsNodes) {
  const auto nodes = Machine("0-1", {"0-3", "4-7"}).Nodes(UpTo(8));
  EXPECT_EQ(PlaceThreads(nodes, 4, {0, 2}).Describe(), "threads on NUMA nodes: 4 on 0");
  EXPECT_EQ(PlaceThreads(nodes, 4, {1, 2}).Describe(), "threads on NUMA nodes: 4 on 1");
  const auto four = Machine("0-3", {"0-1", "2-3", "4-5", "6-7"}).Nodes(UpTo(8));
  EXPECT_EQ(PlaceThreads(four, 4, {1, 2}).Describe(), "threads on NUMA nodes: 2 on 2, 2 on 3");
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(PlaceThreads(four, 2, {rank, 4}).Describe(),
              "threads on NUMA nodes: 2 on " + std::to_string(rank));
  }
}

// The CPUs of this machine, as two nodes.
TEST(WorkerPool, BindsThreadsToTheirNodesAndRestoresTheCaller) {
  const Cpus mine = CpusOfThisThread();
  if (mine.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const auto middle = mine.begin() + static_cast<std::ptrdiff_t>(mine.size() / 2);
  const std::vector<NumaNode> nodes = {{0, {mine.begin(), middle}}, {1, {middle, mine.end()}}};
  {
    WorkerPool pool(4, PlaceThreads(nodes, 4, {}));
    std::vector<Cpus> kept(4);
    pool.Run([&](std::uint32_t thread) { kept[thread] = CpusOfThisThread(); });
    for (std::size_t thread = 0; thread < 4; ++thread) {
      EXPECT_EQ(kept[thread], nodes[pool.placement().NodeOf(thread)].cpus) << thread;
    }
  }
  EXPECT_EQ(CpusOfThisThread(), mine);
  WorkerPool free(2);
  free.Run([&](std::uint32_t) { EXPECT_EQ(CpusOfThisThread(), mine); });
}

TEST(SharedWork, TakesWorkOfItsOwnNodeFirst) {
  const auto nodes = Machine("0-1", {"0-1", "2-3"}).Nodes(UpTo(4));
  SharedWork work(4, PlaceThreads(nodes, 4, {}));
  for (std::size_t t = 0; t < 4; ++t) work.Begin(t, {t * 10, t == 1 ? 0u : 10u});
  std::vector<std::size_t> owners;  // of what thread 1 gets, in order
  for (Share part = work.Next(1, {0, 4}, 1); part.count > 0; part = work.Next(1, {0, 4}, 1)) {
    if (owners.empty() || owners.back() != part.first / 10) owners.push_back(part.first / 10);
  }
  EXPECT_THAT(owners, ElementsAre(0, 2, 3));
}

}  // namespace
}  // namespace penstock::shard::cpu
