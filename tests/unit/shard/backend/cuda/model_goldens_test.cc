// The CUDA backend against HF transformers, for every model type and variant that it runs: on the
// emulator here, on a device in penstock-gpu-tests. Prints one line per variant.
#include "tests/unit/shard/backend/model_goldens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "shard/backend/cuda/cuda_backend.h"
#include "shard/backend/cuda/program_check.h"
#include "tests/unit/shard/backend/cuda/test_gpu.h"
#include "tests/unit/shard/backend/model_checkpoints.h"

namespace penstock::shard::cuda {
namespace {

class CudaModelGolden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    PENSTOCK_DEVICE_OR_SKIP();
    auto device = OpenTestDevice();
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  RunnerOptions OnGpu(RunnerOptions options) {
    options.make = [this, rows = options.sequences](
                       const Model& model,
                       LoadedWeights weights) -> absl::StatusOr<std::unique_ptr<Backend>> {
      CudaOptions cuda;
      cuda.program = model.program;
      cuda.weights = std::move(weights);
      cuda.dtype = model.dtype;
      cuda.max_graph_rows = rows;
      return MakeCudaBackend(std::move(cuda), *device_.gpu);
    };
    return options;
  }

  TestDevice device_;
};

TEST_P(CudaModelGolden, LogitsAndGreedyIdsAreThoseOfTransformers) {
  const ModelGolden golden = ReadModelGolden(GetParam());
  const RunnerOptions options = OnGpu(OptionsOf(golden));
  if (!std::filesystem::exists(options.folder)) GTEST_SKIP() << "no " << options.folder;
  const std::string why = WhyNotServed(golden);
  if (!why.empty()) GTEST_SKIP() << why;
  const auto model = Model::Open({options.folder, options.dtype, Device(), 0, 1});
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::Status check = CheckCudaBackend(model->program, DType::kFloat32);
  if (!check.ok()) GTEST_SKIP() << check.message();

  auto runner = ModelRunner::Open(options);
  ASSERT_NE(runner, nullptr);
  const float chunks = PrefillDifference(*runner, golden, kShortChunk);
  const float decode = DecodeDifference(*runner, golden);
  EXPECT_LE(chunks, golden.bound);
  EXPECT_LE(decode, golden.bound);
  PrintDifferences(golden, "cuda", {std::nullopt, chunks, decode, std::nullopt});
}

INSTANTIATE_TEST_SUITE_P(Models, CudaModelGolden, testing::ValuesIn(GoldenNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace penstock::shard::cuda
