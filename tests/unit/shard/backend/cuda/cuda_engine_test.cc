// The engine of a shard on a CUDA device, with the emulated device and a fake NCCL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "shard/app/cuda/cuda_choice.h"
#include "shard/app/cuda/cuda_device.h"
#include "shard/executor/kv_layout.h"
#include "shard/executor/model_rank.h"
#include "tests/unit/shard/backend/cuda/host_gpu.h"
#include "tests/unit/shard/parallel/nccl/fake_nccl.h"
#include "tests/unit/support/temp_folder.h"
#include "tools/make-model/make_model.h"

namespace penstock::shard::cuda {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class CudaEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    make_model::ModelOptions config;
    config.output = folder_.path();
    config.dtype = DType::kFloat32;
    config.seed = 5;
    config.overwrite = true;
    const auto made = make_model::MakeModel(config, nullptr);
    ASSERT_TRUE(made.ok()) << made.status();
  }

  std::unique_ptr<ModelRank> Engine(CudaChoiceOptions choice) {
    ModelRankOptions options;
    options.model.folder = folder_.path();
    options.model.device = {Device::Kind::kCuda, 0};
    options.device = std::make_shared<CudaDevice>(CudaDeviceFacts{"u", std::uint64_t{1} << 30, 1.0},
                                                  gpu_, gpu_, nccl_);
    if (choice.padded) options.kv_layout = std::make_shared<PaddedLayout>();
    options.contrastive_search = choice.contrastive;
    options.kv = {std::uint64_t{1} << 20, 0.0};
    options.make_backend = CudaChoice(std::move(choice), gpu_);
    return std::make_unique<ModelRank>(std::move(options));
  }

  static std::string LoadError(ModelRank& engine) {
    return std::string(engine.Load([](const v1::LoadProgress&) {}).message());
  }

  TempFolder folder_;
  HostGpu gpu_;
  FakeNccl nccl_;
};

TEST_F(CudaEngineTest, NamesWhatTheBackendDoesNotSupport) {
  EXPECT_THAT(LoadError(*Engine({.wanted = "cuda", .contrastive = true})),
              HasSubstr("`contrastive-search` needs backend reference"));
  EXPECT_THAT(LoadError(*Engine({.wanted = "cuda", .padded = true})),
              HasSubstr("`kv-layout` padded needs backend reference"));
}

TEST_F(CudaEngineTest, FormsAGroupOfOneRankAndComputes) {
  auto engine = Engine({.wanted = "auto"});
  EXPECT_EQ(LoadError(*engine), "");
  EXPECT_EQ(engine->Facts().device(), "cuda");
  EXPECT_EQ(engine->Facts().backend(), "cuda");
  EXPECT_THAT(engine->Facts().capabilities(), Not(Contains("contrastive_search")));
  v1::ConfigureRequest setup;
  setup.set_world_size(1);
  setup.mutable_limits()->set_max_step_tokens(4);
  setup.mutable_limits()->set_max_sequences(2);
  setup.mutable_limits()->set_max_sequence_length(16);
  std::vector<TokenId> tokens;
  for (int epoch = 1; epoch <= 2; ++epoch) {  // a group that forms again
    ASSERT_TRUE(engine->Configure(setup).ok());
    const auto report = engine->Warmup();
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_TRUE(engine->Commit({report->blocks(0), 0}).ok());
    StepPlan plan;
    SequenceStart start;
    start.slot = SlotId(0);
    start.prompt = {5, 6, 7};
    start.prompt_length = 3;
    start.sampling.do_sample = true;
    start.sampling.top_k = 40;
    start.sampling.repetition_penalty = 1.5f;
    start.sampling.seed = 3;
    // With log-probabilities the host samples the token.
    if (epoch == 2) start.logprobs.kind = LogprobRequest::Kind::kRaw;
    plan.starts.push_back(start);
    plan.block_ops.push_back({.slot = SlotId(0), .dst = BlockId(1)});
    plan.segments.push_back({.kind = Segment::Kind::kPrompt,
                             .slot = SlotId(0),
                             .count = 3,
                             .logits = Segment::Logits::kLast});
    const auto result = engine->Execute(plan);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->sequences.size(), 1u);
    ASSERT_EQ(result->sequences[0].tokens.size(), 1u);
    tokens.push_back(result->sequences[0].tokens[0].token);
  }
  EXPECT_EQ(tokens[0], tokens[1]) << "sampled on the device and on the host";
  EXPECT_EQ(nccl_.joined, 0) << "one rank has nothing to sum";
}

}  // namespace
}  // namespace penstock::shard::cuda
