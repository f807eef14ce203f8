// Run-ahead steps on the CUDA backend give the same tokens as steps that the host waits for. The
// emulated device runs work only when the host waits, so values that the host changes or reads too
// early are wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <deque>
#include <map>
#include <memory>

#include "shard/backend/cuda/cuda_backend.h"
#include "shard/executor/model_executor.h"
#include "shard/model/model.h"
#include "shard/parallel/local_communicator.h"
#include "tests/unit/shard/backend/cuda/counting_gpu.h"
#include "tests/unit/shard/backend/cuda/test_gpu.h"
#include "tests/unit/shard/executor/plans.h"
#include "tests/unit/support/temp_folder.h"
#include "tools/make-model/make_model.h"

namespace penstock::shard::cuda {
namespace {

constexpr std::uint32_t kBlocksPerSlot = 2;
constexpr std::uint32_t kSteps = 12;

using Outputs = std::map<std::uint32_t, std::vector<SampledToken>>;  // by slot

class CudaRunAheadTest : public testing::Test {
 protected:
  void SetUp() override {
    PENSTOCK_DEVICE_OR_SKIP();
    make_model::ModelOptions config;
    config.output = folder_.path();
    config.dtype = DType::kFloat32;
    config.seed = 5;
    config.overwrite = true;
    const auto made = make_model::MakeModel(config, nullptr);
    ASSERT_TRUE(made.ok()) << made.status();
    auto device = OpenTestDevice();
    ASSERT_TRUE(device.ok()) << device.status();
    gpu_ = std::make_unique<CountingGpu>(std::move(device->gpu));
    Open();
  }
  void TearDown() override { WorkLate(false); }

  void Open() {
    ModelOptions options;
    options.folder = folder_.path();
    auto model = Model::Open(options);
    ASSERT_TRUE(model.ok()) << model.status();
    CudaOptions cuda;
    cuda.program = model->program;
    auto weights = model->Load(nullptr);
    ASSERT_TRUE(weights.ok()) << weights.status();
    cuda.weights = *std::move(weights);
    cuda.dtype = DType::kFloat32;
    cuda.max_graph_rows = 4;
    auto backend = MakeCudaBackend(std::move(cuda), *gpu_);
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
    ASSERT_TRUE(backend_->Prepare({16, 32, 4, 0}, nullptr).ok());
    ASSERT_TRUE(backend_->AllocateCache(4 * kBlocksPerSlot).ok());
    ExecutorOptions executor;
    executor.slots = 4;
    executor.vocabulary = vocabulary_ = model->spec.vocabulary;
    executor.max_logit_rows = 4;
    executor.device_sampler = dynamic_cast<DeviceSampler*>(backend_.get());
    executor_ = std::make_unique<ModelExecutor>(std::move(executor), *backend_, local_);
  }

  // Four sequences that start one step after another, each with other wishes.
  static StepPlan Plan(std::uint32_t step) {
    StepPlan plan;
    for (std::uint32_t slot = 0; slot < 4 && slot <= step; ++slot) {
      if (slot < step) plan.segments.push_back(plans::Decode(slot));
    }
    if (step >= 4) return plan;
    SequenceStart start = plans::Start(step, {5, 6, 7});
    start.prompt.push_back(static_cast<TokenId>(10 + step));
    start.prompt_length = 4;
    start.sampling.seed = 40 + step;
    if (step % 2 == 1) {
      start.sampling.do_sample = true;
      start.sampling.temperature = 1.2f;
      start.sampling.top_k = 30;
      start.sampling.top_p = 0.9f;
    }
    if (step >= 2) {
      start.sampling.repetition_penalty = 1.7f;
      start.sampling.frequency_penalty = 1.5f;
      start.sampling.presence_penalty = 0.5f;
    }
    using Kind = LogprobRequest::Kind;
    start.logprobs.kind = step == 0 ? Kind::kRaw : Kind::kProcessed;
    for (std::uint32_t i = 0; i < kBlocksPerSlot; ++i) {
      plan.block_ops.push_back(plans::Append(step, step * kBlocksPerSlot + i));
    }
    plan.segments.push_back(plans::Prompt(step, 0, 4));
    plan.starts = {std::move(start)};
    return plan;
  }

  static void Add(const absl::StatusOr<StepResult>& result, Outputs& outputs) {
    ASSERT_TRUE(result.ok()) << result.status();
    for (const SequenceResult& one : result->sequences) {
      EXPECT_EQ(one.finish, ShardFinish::kNone) << one.error;
      auto& tokens = outputs[one.slot.value()];
      tokens.insert(tokens.end(), one.tokens.begin(), one.tokens.end());
    }
  }

  Outputs WaitingForEachStep() {
    Outputs outputs;
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      Add(executor_->Execute(Plan(step)), outputs);
    }
    return outputs;
  }

  Outputs RunningAhead() {
    Outputs outputs;
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      const auto begun = executor_->Begin(Plan(step), [this] {
        ++ready_;
        ready_.notify_all();
      });
      EXPECT_TRUE(begun.ok() && *begun) << begun.status() << ", step " << step;
      if (step > 0) Add(executor_->Collect(), outputs);
    }
    Add(executor_->Collect(), outputs);
    return outputs;
  }

  static void ExpectSame(const Outputs& got, const Outputs& want) {
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [slot, tokens] : want) {
      ASSERT_EQ(got.at(slot).size(), tokens.size());
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        EXPECT_EQ(got.at(slot)[i].token, tokens[i].token) << "slot " << slot << ", token " << i;
        EXPECT_NEAR(got.at(slot)[i].logprob, tokens[i].logprob, 1e-4)
            << "slot " << slot << ", token " << i;
      }
    }
  }

  TempFolder folder_;
  LocalCommunicator local_;
  std::unique_ptr<CountingGpu> gpu_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<ModelExecutor> executor_;
  std::uint32_t vocabulary_ = 0;
  std::atomic<int> ready_ = 0;  // counted after the step has ended
};

TEST_F(CudaRunAheadTest, GivesTheTokensOfStepsThatTheHostWaitsFor) {
  const Outputs want = WaitingForEachStep();
  EXPECT_LT(want.at(0).at(0).logprob, 0.0f);
  executor_->Reset();
  WorkLate(true);
  const int launches = gpu_->graph_launches();
  const int syncs = gpu_->syncs();
  const int allocations = gpu_->allocations();
  ExpectSame(RunningAhead(), want);
  for (int ready = ready_; ready < static_cast<int>(kSteps); ready = ready_) ready_.wait(ready);
  EXPECT_EQ(ready_, static_cast<int>(kSteps));
  EXPECT_EQ(gpu_->graph_launches() - launches, static_cast<int>(kSteps) - 4) << "decodes alone";
  EXPECT_EQ(gpu_->syncs(), syncs);
  EXPECT_EQ(gpu_->allocations(), allocations);
}

// The device samples by the rules of shard/sampling, which the host uses.
TEST_F(CudaRunAheadTest, GivesTheTokensOfTheHost) {
  const Outputs ahead = RunningAhead();
  ExecutorOptions options;
  options.slots = 4;
  options.vocabulary = vocabulary_;
  options.max_logit_rows = 4;
  executor_ = std::make_unique<ModelExecutor>(std::move(options), *backend_, local_);
  ExpectSame(WaitingForEachStep(), ahead);
}

// --speculate: rows of one sequence in a step of decodes, which then runs without a graph.
TEST_F(CudaRunAheadTest, DraftsGiveTheTokensOfStepsWithoutThem) {
  const auto run = [this](std::uint32_t rows, std::size_t count, bool& kept) {
    executor_->Reset();
    StepPlan whole = plans::Whole(plans::Start(0, {5, 6, 5, 6, 5}));
    whole.block_ops.push_back(plans::Append(0, 1));
    std::vector<TokenId> tokens;
    for (StepPlan plan = whole; tokens.size() < count; plan = plans::Decodes({0})) {
      for (Segment& segment : plan.segments) segment.max_rows = rows;
      const auto result = executor_->Execute(plan);
      EXPECT_TRUE(result.ok()) << result.status();
      if (!result.ok()) return tokens;
      for (const TokenId token : plans::Tokens(result->sequences[0])) tokens.push_back(token);
      kept |= result->sequences[0].tokens.size() > 1;
    }
    tokens.resize(count);
    return tokens;
  };
  bool kept = false;
  const std::vector<TokenId> want = run(1, 20, kept);
  ASSERT_FALSE(kept);
  EXPECT_EQ(run(4, 20, kept), want);
  EXPECT_TRUE(kept) << "no draft was right, so the test shows little";
}

}  // namespace
}  // namespace penstock::shard::cuda
