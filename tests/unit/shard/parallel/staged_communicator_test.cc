#include "shard/parallel/staged_communicator.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "shard/parallel/shm_communicator.h"
#include "tests/unit/shard/parallel/nccl/fake_nccl.h"

namespace penstock::shard {
namespace {

void CheckRank(std::shared_ptr<Communicator> host, int rank) {
  FakeQueue queue;
  StagedCommunicator staged(std::move(host), queue);
  EXPECT_EQ(staged.rank(), rank);
  EXPECT_EQ(staged.world(), 2);

  std::array<float, 3> data = {1.0f + static_cast<float>(rank), 2.0f, 0.5f};
  ASSERT_TRUE(staged.AllReduceSum(data.data(), data.size()).ok());
  EXPECT_EQ(data, (std::array<float, 3>{3.0f, 4.0f, 1.0f}));

  std::array<int, 2> all = {};
  const int mine = 10 + rank;
  ASSERT_TRUE(staged.AllGather(&mine, sizeof mine, all.data()).ok());
  EXPECT_EQ(all, (std::array<int, 2>{10, 11}));

  int told = rank == 1 ? 7 : 0;
  ASSERT_TRUE(staged.Broadcast(&told, sizeof told, 1).ok());
  EXPECT_EQ(told, 7);
}

TEST(StagedCommunicatorTest, TwoRanksOnOneDevice) {
  const std::string name = "penstock-staged-test-" + std::to_string(getpid());
  std::array<std::thread, 2> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads[static_cast<std::size_t>(rank)] = std::thread([&name, rank] {
      ShmOptions options;
      options.name = name;
      options.rank = rank;
      auto host = JoinShmGroup(options);
      ASSERT_TRUE(host.ok()) << host.status();
      CheckRank(*std::move(host), rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace penstock::shard
