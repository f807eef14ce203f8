#include "shard/parallel/shm_communicator.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <vector>

namespace penstock::shard {
namespace {

std::string FreshName() {
  static int count = 0;
  return "penstock-test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

using Body = std::function<void(Communicator&)>;

// Runs `body` on every rank, each in its own thread.
void OnAllRanks(int world, const Body& body, std::size_t chunk_bytes = 4096) {
  const std::string name = FreshName();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      ShmOptions options{name, rank, world, std::chrono::milliseconds(20'000), chunk_bytes};
      auto communicator = JoinShmGroup(options);
      ASSERT_TRUE(communicator.ok()) << communicator.status();
      body(**communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> RankData(int rank, std::size_t count) {
  std::mt19937 engine(static_cast<unsigned>(rank) * 7919u + 1u);
  std::uniform_real_distribution<float> draw(-1.0f, 1.0f);
  std::vector<float> data(count);
  for (float& value : data) value = draw(engine);
  return data;
}

class ShmGroup : public testing::TestWithParam<int> {};

TEST_P(ShmGroup, ReducesInRankOrderWithTheSameBitsEverywhere) {
  const int world = GetParam();
  for (std::size_t count : {0u, 1u, 64u, 1024u, 5000u}) {
    std::vector<float> expected = RankData(0, count);
    for (int rank = 1; rank < world; ++rank) {
      const auto part = RankData(rank, count);
      for (std::size_t i = 0; i < count; ++i) expected[i] += part[i];
    }
    OnAllRanks(world, [&](Communicator& communicator) {
      auto data = RankData(communicator.rank(), count);
      ASSERT_TRUE(communicator.AllReduceSum(data.data(), count).ok());
      if (count == 0) return;
      EXPECT_EQ(std::memcmp(data.data(), expected.data(), count * sizeof(float)), 0);
    });
  }
}

TEST_P(ShmGroup, GathersInRankOrderAcrossChunks) {
  const int world = GetParam();
  const std::size_t bytes = 10'001;  // more than two chunks, not a multiple
  OnAllRanks(world, [&](Communicator& communicator) {
    std::vector<std::uint8_t> mine(bytes, static_cast<std::uint8_t>(communicator.rank() + 1));
    std::vector<std::uint8_t> all(bytes * static_cast<std::size_t>(world));
    ASSERT_TRUE(communicator.AllGather(mine.data(), bytes, all.data()).ok());
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i / bytes + 1);
  });
}

TEST_P(ShmGroup, BroadcastsFromAnyRoot) {
  const int world = GetParam();
  OnAllRanks(world, [&](Communicator& communicator) {
    for (int root = 0; root < world; ++root) {
      std::vector<int> data(3000, communicator.rank() == root ? 100 + root : -1);
      ASSERT_TRUE(communicator.Broadcast(data.data(), data.size() * sizeof(int), root).ok());
      ASSERT_EQ(data, std::vector<int>(3000, 100 + root));
    }
  });
}

// Ten thousand operations with ranks of different speed would show a buffer that is reused too
// early.
TEST_P(ShmGroup, ManySmallOperationsDoNotMix) {
  OnAllRanks(GetParam(), [&](Communicator& communicator) {
    std::mt19937 engine(static_cast<unsigned>(communicator.rank()));
    for (int i = 0; i < 10'000; ++i) {
      if (engine() % 97 == 0) std::this_thread::yield();
      float value = static_cast<float>(i + communicator.rank());
      ASSERT_TRUE(communicator.AllReduceSum(&value, 1).ok());
      const int world = communicator.world();
      ASSERT_EQ(value, static_cast<float>(world * i + world * (world - 1) / 2));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, ShmGroup, testing::Values(2, 3, 4));

TEST(ShmCommunicator, NothingRemainsInSharedMemoryAfterJoining) {
  const std::string name = FreshName();
  std::thread other([&] { EXPECT_TRUE(JoinShmGroup({name, 1, 2}).ok()); });
  const auto communicator = JoinShmGroup({name, 0, 2});
  other.join();
  ASSERT_TRUE(communicator.ok());
  EXPECT_LT(shm_open(("/" + name).c_str(), O_RDONLY, 0), 0);
}

TEST(ShmCommunicator, AMissingRankIsNamedAtTheDeadline) {
  ShmOptions options{FreshName(), 0, 2, std::chrono::milliseconds(30)};
  const auto communicator = JoinShmGroup(options);
  EXPECT_EQ(communicator.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(communicator.status().ToString().find("waiting for rank 1"), std::string::npos);
}

TEST(ShmCommunicator, DifferentSizesAreAnError) {
  OnAllRanks(2, [](Communicator& communicator) {
    std::vector<float> data(static_cast<std::size_t>(8 + communicator.rank()));
    EXPECT_FALSE(communicator.AllReduceSum(data.data(), data.size()).ok());
    EXPECT_FALSE(communicator.AllReduceSum(data.data(), 1).ok()) << "it is aborted for good";
  });
}

TEST(ShmCommunicator, AbortEndsAWaitingRankLongBeforeItsDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  OnAllRanks(2, [](Communicator& communicator) {
    if (communicator.rank() == 1) {
      communicator.Abort();
      return;
    }
    float value = 1;
    EXPECT_EQ(communicator.AllReduceSum(&value, 1).code(), absl::StatusCode::kAborted);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(ShmCommunicator, ADeadRankIsFoundByTheDeadlineOfTheOther) {
  const std::string name = FreshName();
  const pid_t child = fork();
  if (child == 0) {
    auto communicator = JoinShmGroup({name, 1, 2});
    _exit(communicator.ok() ? 0 : 1);  // dies without an orderly end
  }
  auto communicator = JoinShmGroup({name, 0, 2, std::chrono::milliseconds(200)});
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  int status = 0;
  waitpid(child, &status, 0);
  float value = 1;
  EXPECT_EQ((*communicator)->AllReduceSum(&value, 1).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(ShmCommunicator, RefusesBadOptionsByName) {
  EXPECT_NE(JoinShmGroup({"a/b", 0, 2}).status().ToString().find("rendezvous"), std::string::npos);
  EXPECT_NE(JoinShmGroup({"x", 2, 2}).status().ToString().find("rank"), std::string::npos);
  EXPECT_NE(JoinShmGroup({"x", 0, 1}).status().ToString().find("world"), std::string::npos);
}

}  // namespace
}  // namespace penstock::shard
