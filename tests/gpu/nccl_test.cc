// The real NCCL on one device: a world of one takes the path of every world.
#include <gtest/gtest.h>

#include <array>

#include "shard/parallel/local_communicator.h"
#include "shard/parallel/nccl/nccl_api.h"
#include "shard/parallel/nccl/nccl_communicator.h"
#include "tests/unit/shard/backend/cuda/test_gpu.h"

namespace penstock::shard::cuda {
namespace {

class NcclTest : public testing::Test {
 protected:
  void SetUp() override {
    PENSTOCK_DEVICE_OR_SKIP();
    auto device = OpenTestDevice();
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = std::move(*device);
    nccl_ = MakeNcclLibrary();
    LocalCommunicator control;
    const auto id = ShareUniqueId(*nccl_, control);
    ASSERT_TRUE(id.ok()) << id.status();
    NcclOptions options;
    options.unique_id = *id;
    auto joined = JoinNcclGroup(options, *nccl_, *device_.queue);
    ASSERT_TRUE(joined.ok()) << joined.status();
    communicator_ = *std::move(joined);
    auto memory = GpuMemory::OnDevice(*device_.gpu, 4 * sizeof(float));
    ASSERT_TRUE(memory.ok()) << memory.status();
    memory_ = *std::move(memory);
    ASSERT_TRUE(device_.gpu->Upload(memory_.data(), values_.data(), sizeof values_).ok());
  }

  std::array<float, 4> Read() {
    std::array<float, 4> values{};
    EXPECT_TRUE(device_.gpu->Download(values.data(), memory_.data(), sizeof values).ok());
    EXPECT_TRUE(device_.gpu->Synchronize().ok());
    return values;
  }
  float* data() { return static_cast<float*>(memory_.data()); }

  TestDevice device_;
  std::unique_ptr<NcclApi> nccl_;
  std::unique_ptr<Communicator> communicator_;
  GpuMemory memory_;
  std::array<float, 4> values_ = {1, 2, 3, 4};
};

TEST_F(NcclTest, CollectivesOfAWorldOfOneKeepTheValues) {
  ASSERT_TRUE(communicator_->AllReduceSum(data(), 4).ok());
  ASSERT_TRUE(communicator_->Broadcast(data(), sizeof values_, 0).ok());
  EXPECT_EQ(Read(), values_);
  EXPECT_TRUE(communicator_->Health().ok());
}

TEST_F(NcclTest, AreCapturedAndReplayed) {
  ASSERT_TRUE(communicator_->AllReduceSum(data(), 4).ok());  // connects before the capture
  ASSERT_TRUE(device_.gpu->Synchronize().ok());
  ASSERT_TRUE(device_.gpu->BeginCapture().ok());
  const absl::Status recorded = communicator_->AllReduceSum(data(), 4);
  const auto graph = device_.gpu->EndCapture();
  ASSERT_TRUE(recorded.ok()) << recorded;
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(device_.gpu->Launch(*graph).ok());
  EXPECT_EQ(Read(), values_);
  device_.gpu->FreeGraph(*graph);
}

TEST_F(NcclTest, AnAbortedCommunicatorRefusesWork) {
  communicator_->Abort();
  EXPECT_TRUE(absl::IsAborted(communicator_->AllReduceSum(data(), 4)));
}

}  // namespace
}  // namespace penstock::shard::cuda
