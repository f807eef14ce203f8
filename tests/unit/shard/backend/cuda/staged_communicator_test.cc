// Ranks of one device that communicate through host memory. The emulated device runs work only when
// the host waits, so values that the host reads or overwrites too early are wrong.
#include "shard/backend/cuda/staged_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "shard/parallel/shm_communicator.h"
#include "tests/unit/shard/backend/cuda/counting_gpu.h"
#include "tests/unit/shard/backend/cuda/test_gpu.h"

namespace penstock::shard::cuda {
namespace {

using testing::HasSubstr;

// Each of two ranks on a thread and a stream of its own.
void OnTwoRanks(
    const std::function<void(std::shared_ptr<Communicator>, std::unique_ptr<Gpu>)>& body) {
  static int count = 0;
  const std::string name =
      "penstock-staged-test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
  std::array<std::shared_ptr<Communicator>, 2> hosts;  // live on: one that goes would end the other
  std::array<std::thread, 2> threads;
  for (int rank = 0; rank < 2; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    threads[index] = std::thread([&, rank, index] {
      ShmOptions options;
      options.name = name;
      options.rank = rank;
      auto host = JoinShmGroup(options);
      ASSERT_TRUE(host.ok()) << host.status();
      hosts[index] = *std::move(host);
      auto device = OpenTestDevice();
      ASSERT_TRUE(device.ok()) << device.status();
      WorkLate(true);
      body(hosts[index], std::move(device->gpu));
      WorkLate(false);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

GpuMemory OnDevice(Gpu& gpu, const std::vector<float>& values) {
  const std::size_t bytes = values.size() * sizeof(float);
  auto memory = GpuMemory::OnDevice(gpu, bytes);
  EXPECT_TRUE(memory.ok()) << memory.status();
  EXPECT_TRUE(gpu.Upload(memory->data(), values.data(), bytes).ok());
  return *std::move(memory);
}

std::vector<float> Read(Gpu& gpu, const GpuMemory& memory) {
  std::vector<float> values(memory.bytes() / sizeof(float));
  EXPECT_TRUE(gpu.Download(values.data(), memory.data(), memory.bytes()).ok());
  EXPECT_TRUE(gpu.Synchronize().ok());
  return values;
}

float* Floats(const GpuMemory& memory) { return static_cast<float*>(memory.data()); }

class StagedCommunicatorTest : public testing::Test {
 protected:
  void SetUp() override { PENSTOCK_DEVICE_OR_SKIP(); }
};

TEST_F(StagedCommunicatorTest, JoinsTwoRanksOfOneDevice) {
  OnTwoRanks([](std::shared_ptr<Communicator> host, std::unique_ptr<Gpu> gpu) {
    StagedCommunicator staged(std::move(host), *gpu);
    const auto rank = static_cast<float>(staged.rank());
    EXPECT_EQ(staged.world(), 2);
    const GpuMemory sums = OnDevice(*gpu, {1 + rank, 2, 0.5f});
    ASSERT_TRUE(staged.AllReduceSum(Floats(sums), 3).ok());
    EXPECT_EQ(Read(*gpu, sums), (std::vector<float>{3, 4, 1}));
    const GpuMemory mine = OnDevice(*gpu, {10 + rank});
    const GpuMemory all = OnDevice(*gpu, {0, 0});
    ASSERT_TRUE(staged.AllGather(mine.data(), sizeof(float), all.data()).ok());
    EXPECT_EQ(Read(*gpu, all), (std::vector<float>{10, 11}));
    const GpuMemory told = OnDevice(*gpu, {7 * rank});
    ASSERT_TRUE(staged.Broadcast(told.data(), sizeof(float), 1).ok());
    EXPECT_EQ(Read(*gpu, told), (std::vector<float>{7}));
  });
}

// A call does not wait for its copy back, so the next one must not overwrite its buffer.
TEST_F(StagedCommunicatorTest, CallsFollowOneAnother) {
  OnTwoRanks([](std::shared_ptr<Communicator> host, std::unique_ptr<Gpu> gpu) {
    StagedCommunicator staged(std::move(host), *gpu);
    const auto rank = static_cast<float>(staged.rank());
    std::vector<GpuMemory> told;
    for (float call : {1.0f, 2.0f, 3.0f}) told.push_back(OnDevice(*gpu, {call * (1 - rank)}));
    std::vector<GpuMemory> sums;
    for (std::size_t size : {2u, 2u, 100u}) {
      sums.push_back(OnDevice(*gpu, std::vector<float>(size, static_cast<float>(size) + rank)));
    }
    for (const GpuMemory& one : told) {
      ASSERT_TRUE(staged.Broadcast(one.data(), sizeof(float), 0).ok());
    }
    for (const GpuMemory& one : sums) {
      ASSERT_TRUE(staged.AllReduceSum(Floats(one), one.bytes() / sizeof(float)).ok());
    }
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(Read(*gpu, told[i]), (std::vector<float>{static_cast<float>(i + 1)}));
      const std::vector<float> sum = Read(*gpu, sums[i]);
      EXPECT_EQ(sum, std::vector<float>(sum.size(), 2 * static_cast<float>(sum.size()) + 1));
    }
  });
}

// A device that never reaches its marks.
class StuckGpu final : public CountingGpu {
 public:
  using CountingGpu::CountingGpu;
  bool stuck = false;
  absl::Status WaitFor(Mark mark) override {
    return stuck ? absl::DeadlineExceededError("late") : CountingGpu::WaitFor(mark);
  }
};

TEST_F(StagedCommunicatorTest, ALateCopyEndsTheCallsOfEveryRank) {
  const auto begin = std::chrono::steady_clock::now();
  OnTwoRanks([](std::shared_ptr<Communicator> host, std::unique_ptr<Gpu> device) {
    StuckGpu gpu(std::move(device));
    StagedCommunicator staged(std::move(host), gpu);
    const GpuMemory data = OnDevice(gpu, {1, 2});
    ASSERT_TRUE(staged.AllReduceSum(Floats(data), 2).ok());
    gpu.stuck = staged.rank() == 0;
    const absl::Status status = staged.AllReduceSum(Floats(data), 2);
    ASSERT_FALSE(status.ok());
    if (gpu.stuck) {
      EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("a copy of a collective: "));
    }
    EXPECT_EQ(staged.Health(), status);
    EXPECT_EQ(staged.Broadcast(data.data(), sizeof(float), 0), status) << "every later call";
    EXPECT_TRUE(gpu.Synchronize().ok()) << "before memory is freed";
  });
  // The rank whose device works does not wait for its own deadline of 30 s.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace penstock::shard::cuda
