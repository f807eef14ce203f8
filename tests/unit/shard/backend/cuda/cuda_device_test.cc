#include "shard/app/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <thread>

#include "shard/app/cuda/visible_device.h"
#include "shard/parallel/local_communicator.h"
#include "shard/parallel/shm_communicator.h"
#include "tests/unit/shard/backend/cuda/host_gpu.h"
#include "tests/unit/shard/parallel/nccl/fake_nccl.h"

namespace penstock::shard::cuda {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kFree = std::uint64_t{1} << 30;  // of a HostGpu

TEST(DeviceOfRankTest, IsTheOneGivenOrTheOneOfTheRank) {
  EXPECT_EQ(*DeviceOfRank(nullptr, 2), "2");
  EXPECT_EQ(*DeviceOfRank("5", 1), "5") << "the launcher's choice for this rank";
  EXPECT_EQ(*DeviceOfRank("4,GPU-6", 1), "GPU-6");
  EXPECT_THAT(std::string(DeviceOfRank("4,5", 2).status().message()), HasSubstr("for rank 2"));
  EXPECT_FALSE(DeviceOfRank("", 0).ok()) << "every device is hidden";
  EXPECT_FALSE(DeviceOfRank("-1", 0).ok());
}

TEST(CudaDeviceTest, KeepsToTheMemoryFraction) {
  HostGpu gpu;
  FakeNccl nccl;
  const auto memory = [&](double fraction) {
    CudaDevice device({"u", 2 * kFree, fraction}, gpu, gpu, nccl);
    return device.Memory()->free_bytes;
  };
  EXPECT_EQ(memory(1.0), kFree);
  // Half is used already, so three quarters leave a quarter of the whole.
  EXPECT_EQ(memory(0.75), kFree / 2);
  EXPECT_EQ(memory(0.25), 0u);
}

TEST(CudaDeviceTest, OneRankAloneDoesNotStartNccl) {
  HostGpu gpu;
  FakeNccl nccl;
  nccl.error_now = "unhandled system error";
  CudaDevice device({"u", kFree, 1.0}, gpu, gpu, nccl);
  const auto alone = std::make_shared<LocalCommunicator>();
  const auto joined = device.Join(alone);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(*joined, alone);
  EXPECT_EQ(nccl.joined, 0);
}

// Both ranks join, each with its uuid; `check` sees what each got.
void JoinTwo(const std::array<std::string, 2>& uuids,
             const std::function<void(int, CudaDevice&, FakeNccl&)>& check) {
  const std::string name = "penstock-cuda-device-test-" + std::to_string(getpid());
  std::array<std::thread, 2> threads;
  for (int rank = 0; rank < 2; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    threads[index] = std::thread([&, rank, index] {
      HostGpu gpu;
      FakeNccl nccl;
      CudaDevice device({uuids[index], kFree, 1.0}, gpu, gpu, nccl);
      ShmOptions options;
      options.name = name;
      options.rank = rank;
      auto control = JoinShmGroup(options);
      ASSERT_TRUE(control.ok()) << control.status();
      const auto joined = device.Join(*std::move(control));
      ASSERT_TRUE(joined.ok()) << joined.status();
      EXPECT_EQ((*joined)->rank(), rank);
      check(rank, device, nccl);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CudaDeviceTest, RanksThatShareADeviceJoinThroughTheHostAndDivideItsMemory) {
  JoinTwo({"same", "same"}, [](int, CudaDevice& device, FakeNccl& nccl) {
    EXPECT_EQ(nccl.joined, 0) << "NCCL refuses two ranks on one device";
    EXPECT_EQ(device.Memory()->ranks, 2u);
  });
}

TEST(CudaDeviceTest, RanksWithADeviceEachJoinThroughNccl) {
  JoinTwo({"here", "away"}, [](int, CudaDevice& device, FakeNccl& nccl) {
    EXPECT_EQ(nccl.joined, 1);
    EXPECT_EQ(device.Memory()->ranks, 1u);
  });
}

}  // namespace
}  // namespace penstock::shard::cuda
