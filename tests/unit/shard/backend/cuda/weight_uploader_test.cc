// Weights through pinned buffers that are smaller than a matrix.
#include "shard/backend/cuda/weight_uploader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "shard/weights/memory_region.h"
#include "tests/unit/shard/backend/cuda/test_gpu.h"

namespace penstock::shard::cuda {
namespace {

// A matrix of several megabytes, which several threads read, and a vector.
class WeightUploaderTest : public testing::Test {
 protected:
  static constexpr std::size_t kRows = 1500;
  static constexpr std::size_t kColumns = 1030;

  void SetUp() override {
    PENSTOCK_DEVICE_OR_SKIP();
    auto device = OpenTestDevice();
    ASSERT_TRUE(device.ok()) << device.status();
    gpu_ = std::move(device->gpu);
    WorkLate(true);  // a buffer that is read into too early shows
    std::iota(matrix_.begin(), matrix_.end(), 0.0f);
    std::iota(vector_.begin(), vector_.end(), 1e6f);
    views_ = {TensorView::Matrix(matrix_.data(), kRows, kColumns, DType::kFloat32),
              TensorView::Vector(vector_.data(), static_cast<std::int64_t>(vector_.size()),
                                 DType::kFloat32)};
  }
  void TearDown() override { WorkLate(false); }

  std::unique_ptr<Gpu> gpu_;
  std::vector<float> matrix_ = std::vector<float>(kRows * kColumns);
  std::vector<float> vector_ = std::vector<float>(77);
  std::vector<TensorView> views_;
};

TEST_F(WeightUploaderTest, CopiesEveryRow) {
  const LoadedSource source(views_);
  std::uint64_t reported = 0;
  const LoadProgress progress = [&](std::string_view, std::uint64_t done, std::uint64_t total) {
    EXPECT_GE(done, reported);
    EXPECT_EQ(total, (matrix_.size() + vector_.size()) * sizeof(float));
    reported = done;
    return true;
  };
  for (const std::uint64_t buffer : {std::uint64_t{2} << 20, std::uint64_t{5000}}) {
    reported = 0;
    auto uploader = WeightUploader::Create(*gpu_, source, progress, buffer);
    ASSERT_TRUE(uploader.ok()) << uploader.status();
    std::vector<GpuMemory> memory;
    for (std::int32_t i = 0; i < 2; ++i) {
      memory.push_back(*GpuMemory::OnDevice(*gpu_, uploader->BytesOf(i)));
      ASSERT_TRUE(uploader->Upload(i, memory.back().data()).ok());
    }
    std::vector<float> matrix(matrix_.size());
    std::vector<float> vector(vector_.size());
    ASSERT_TRUE(gpu_->Download(matrix.data(), memory[0].data(), matrix.size() * 4).ok());
    ASSERT_TRUE(gpu_->Download(vector.data(), memory[1].data(), vector.size() * 4).ok());
    ASSERT_TRUE(gpu_->Synchronize().ok());
    EXPECT_TRUE(matrix == matrix_) << "buffers of " << buffer;
    EXPECT_EQ(vector, vector_);
    EXPECT_EQ(reported, (matrix_.size() + vector_.size()) * sizeof(float));
  }
}

TEST_F(WeightUploaderTest, EndsWhenProgressSaysSo) {
  const LoadedSource source(views_);
  const LoadProgress progress = [](std::string_view, std::uint64_t done, std::uint64_t) {
    return done < 1000000;
  };
  auto uploader = WeightUploader::Create(*gpu_, source, progress, 1 << 18);
  ASSERT_TRUE(uploader.ok());
  const auto memory = GpuMemory::OnDevice(*gpu_, uploader->BytesOf(0));
  const absl::Status status = uploader->Upload(0, memory->data());
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_TRUE(gpu_->Synchronize().ok());
}

}  // namespace
}  // namespace penstock::shard::cuda
