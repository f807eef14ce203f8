// The CUDA backend against HF transformers. Prints one line per variant. penstock-gpu-tests runs
// every model type and variant that the backend has kernels for. On the emulator, which needs
// seconds for each, these are some that have every operation; PENSTOCK_ALL_GOLDENS=1 runs all there
// too.
#include "tests/unit/shard/backend/model_goldens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "shard/backend/cuda/cuda_backend.h"
#include "shard/backend/cuda/program_check.h"
#include "tests/unit/shard/backend/cuda/test_gpu.h"
#include "tests/unit/shard/backend/model_checkpoints.h"

namespace penstock::shard::cuda {
namespace {

bool RunsHere(const std::string& name) {
  static const std::set<std::string> emulated = {
      "bloom-v4_six_heads",          // linear biases, a norm of the embeddings
      "cohere-v4_head_norms",        // layer norms of heads, scaled logits
      "gemma2-v4_softcaps",          // softcaps, norms after a branch and with an offset
      "gemma3-v4_wrapped",           // RoPE that differs by layer
      "glm4_moe-v4_groups",          // groups of experts
      "gpt2-v4_bare",                // learned positions
      "gpt_oss-v5_wide",             // sinks, experts with biases
      "granitemoeshared-v4_shared",  // scaled branches, a shared expert
      "hunyuan_v1_dense-v4_alpha",   // RoPE by length, head norms after it
      "llama4_text-v4_scout",        // chunks, queries that grow, experts with weighed inputs
      "minimax_m2-v5_whole_rope",    // norms over all heads
      "nemotron-v5_biases",          // squared ReLU
      "olmo-v4_clip",                // clamps, norms without weights
      "opt-v4_post_norm",            // embeddings that are narrower than the stream
      "phi3-v4_su_crossing",         // RoPE that changes in the text
      "qwen2_moe-v4_hub",            // a shared expert with a gate
      "xglm-v4_hub",                 // sinusoids
  };
  return !IsEmulated() || emulated.contains(name) || std::getenv("PENSTOCK_ALL_GOLDENS") != nullptr;
}

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
  if (!RunsHere(GetParam())) GTEST_SKIP() << "not on the emulator";
  ModelGolden golden = ReadModelGolden(GetParam());
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
  if (IsEmulated() && golden.length_rule.empty()) golden.text.resize(golden.prompt + 8);
  std::optional<float> chunks;
  if (!IsEmulated()) chunks = PrefillDifference(*runner, golden, kShortChunk);
  const float decode = DecodeDifference(*runner, golden);
  EXPECT_LE(chunks.value_or(0.0f), golden.bound);
  EXPECT_LE(decode, golden.bound);
  PrintDifferences(golden, "cuda", {std::nullopt, chunks, decode, std::nullopt});
}

// Products and attention on tensor cores. Where two experts of a row are nearly equal, bfloat16 may
// choose the other one.
class CudaBfloat16Golden : public CudaModelGolden {};

TEST_P(CudaBfloat16Golden, LogitsAreAsNearToFloat32AsThoseOfTheReference) {
  const ModelGolden golden = ReadModelGolden(GetParam());
  RunnerOptions options = OptionsOf(golden);
  if (!std::filesystem::exists(options.folder)) GTEST_SKIP() << "no " << options.folder;
  options.dtype = DType::kBFloat16;
  auto reference = ModelRunner::Open(options);
  auto runner = ModelRunner::Open(OnGpu(options));
  ASSERT_TRUE(reference != nullptr && runner != nullptr);
  const float usual = PrefillDifference(*reference, golden, kWholePrompt);
  const float whole = PrefillDifference(*runner, golden, kWholePrompt);
  EXPECT_LE(whole, 2 * usual + 0.05f) << "the reference differs by " << usual;
  PrintDifferences(golden, "reference-bf16", {usual, std::nullopt, std::nullopt, std::nullopt});
  PrintDifferences(golden, "cuda-bf16", {whole, std::nullopt, std::nullopt, std::nullopt});
}

INSTANTIATE_TEST_SUITE_P(Models, CudaBfloat16Golden,
                         testing::Values("gemma2-v4_softcaps", "gpt_oss-v5_wide", "mixtral-v4_hub",
                                         "llama4_text-v4_scout", "olmoe-v4_hub"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

INSTANTIATE_TEST_SUITE_P(Models, CudaModelGolden, testing::ValuesIn(GoldenNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace penstock::shard::cuda
