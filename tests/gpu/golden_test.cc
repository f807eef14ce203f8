// The CUDA backend against HF transformers, in float32. Too much for an emulated device.
#include <gtest/gtest.h>

#include "shard/backend/cuda/cuda_backend.h"
#include "tests/unit/shard/backend/cuda/test_gpu.h"
#include "tests/unit/shard/backend/hf_goldens.h"

namespace penstock::shard::cuda {
namespace {

class GpuGolden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    PENSTOCK_DEVICE_OR_SKIP();
    auto device = OpenTestDevice();
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }
  TestDevice device_;
};

TEST_P(GpuGolden, LogitsAndGreedyIdsAreThose) {
  const HfGoldens goldens = ReadHfGoldens(GetParam());
  RunnerOptions options;
  options.folder = goldens.folder;
  options.dtype = DType::kFloat32;
  options.make = [this](const Model& model, LoadedWeights weights) {
    CudaOptions cuda;
    cuda.program = model.program;
    cuda.weights = std::move(weights);
    cuda.dtype = model.dtype;
    return MakeCudaBackend(std::move(cuda), *device_.gpu);
  };
  auto runner = ModelRunner::Open(options);
  ASSERT_NE(runner, nullptr);
  for (std::size_t chunk : {128u, 17u}) ExpectGoldenLogits(*runner, goldens, chunk);
  ExpectGoldenIds(*runner, goldens);
}

INSTANTIATE_TEST_SUITE_P(Models, GpuGolden,
                         testing::Values("demo", "llama", "mistral", "qwen2", "qwen3", "gpt_neox",
                                         "gpt_neox_sequential"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace penstock::shard::cuda
