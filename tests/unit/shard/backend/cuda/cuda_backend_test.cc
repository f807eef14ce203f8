// The whole CUDA backend against the reference backend on the CPU.
#include "shard/backend/cuda/cuda_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <set>

#include "shard/backend/cuda/device_weights.h"
#include "shard/backend/cuda/program_check.h"
#include "shard/backend/cuda/staged_communicator.h"
#include "tests/unit/shard/backend/cuda/counting_gpu.h"
#include "tests/unit/shard/backend/cuda/test_gpu.h"
#include "tests/unit/shard/backend/model_runner.h"
#include "tests/unit/support/temp_folder.h"
#include "tools/make-model/make_model.h"

namespace penstock::shard::cuda {
namespace {

using testing::HasSubstr;

std::vector<TokenId> Prompt(std::size_t size, TokenId first) {
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < size; ++i) {
    tokens.push_back(static_cast<TokenId>((first + 37 * static_cast<TokenId>(i)) % 250 + 3));
  }
  return tokens;
}

class CudaBackendTest : public testing::Test {
 protected:
  void MakeModel(const std::string& type, std::uint32_t window = 0, DType dtype = DType::kFloat32) {
    make_model::ModelOptions config;
    config.output = options_.folder = folder_.path();
    config.type = type;
    config.dtype = dtype;
    config.seed = 5;
    config.sliding_window = window;
    config.overwrite = true;
    const auto made = make_model::MakeModel(config, nullptr);
    ASSERT_TRUE(made.ok()) << made.status();
    options_.max_step_tokens = 24;
    options_.max_sequence_length = 300;
  }

  static RunnerOptions OnGpu(RunnerOptions options, Gpu& gpu, bool graphs = true,
                             bool batch_invariant = false) {
    const std::uint32_t graph_rows = options.sequences;
    options.make = [&gpu, graphs, batch_invariant, graph_rows, block_size = options.block_size](
                       const Model& model,
                       LoadedWeights weights) -> absl::StatusOr<std::unique_ptr<Backend>> {
      CudaOptions cuda;
      cuda.program = model.program;
      cuda.weights = std::move(weights);
      cuda.dtype = model.dtype;
      cuda.block_size = block_size;
      cuda.parts.graphs = graphs;
      cuda.batch_invariant = batch_invariant;
      cuda.max_graph_rows = graph_rows;
      cuda.quantization = model.quantization;
      cuda.kv_type = model.kv_type;
      return MakeCudaBackend(std::move(cuda), gpu);
    };
    return options;
  }

  void SetUp() override {
    PENSTOCK_DEVICE_OR_SKIP();
    auto device = OpenTestDevice();
    ASSERT_TRUE(device.ok()) << device.status();
    gpu_ = std::make_unique<CountingGpu>(std::move(device->gpu));
  }

  TempFolder folder_;
  RunnerOptions options_;
  std::unique_ptr<CountingGpu> gpu_;
};

TEST_F(CudaBackendTest, AgreesWithTheReferenceOnEveryFamily) {
  for (const char* type : {"llama", "qwen2", "qwen3", "mistral", "gpt_neox"}) {
    MakeModel(type);
    auto reference = ModelRunner::Open(options_);
    auto cuda = ModelRunner::Open(OnGpu(options_, *gpu_));
    ASSERT_TRUE(reference != nullptr && cuda != nullptr);
    for (std::size_t chunk : {24u, 7u}) {
      reference->Reset(0);
      cuda->Reset(0);
      EXPECT_LT(MaxDifference(reference->Prefill(0, Prompt(40, 1), chunk),
                              cuda->Prefill(0, Prompt(40, 1), chunk)),
                1e-4f)
          << type << ", chunks of " << chunk;
    }
    // Prompts and decodes in one step, then decodes alone, which run as CUDA graphs.
    for (int step = 0; step < 3; ++step) {
      std::vector<ModelRunner::Feed> feeds = {{0, {100 + step}}, {1, {50 + step}}};
      if (step == 0) feeds.push_back({2, Prompt(9, 4)});
      const auto want = reference->Step(feeds);
      const auto got = cuda->Step(feeds);
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_LT(MaxDifference(want[i], got[i]), 1e-4f) << type << ", step " << step;
      }
    }
    EXPECT_GT(gpu_->graph_launches(), 0);
  }
}

TEST_F(CudaBackendTest, GraphsGiveTheIdsOfEagerStepsOverPartitionsAndWindows) {
  for (std::uint32_t window : {0u, 24u}) {
    MakeModel("mistral", window);
    auto eager = ModelRunner::Open(OnGpu(options_, *gpu_, false));
    auto graphs = ModelRunner::Open(OnGpu(options_, *gpu_));
    ASSERT_TRUE(eager != nullptr && graphs != nullptr);
    // From below the second partition of 256 positions into it.
    EXPECT_EQ(eager->Greedy(0, Prompt(250, 3), 12, 24), graphs->Greedy(0, Prompt(250, 3), 12, 24));
  }
}

TEST_F(CudaBackendTest, ABatchInvariantSequenceHasTheSameBitsInAnyBatch) {
  MakeModel("llama", 0, DType::kBFloat16);
  options_.max_step_tokens = 64;  // more rows than one group of a product has
  for (const Quantization form : {Quantization::kNone, Quantization::kInt8, Quantization::kFp8}) {
    options_.quantization = form;
    options_.kv_type = form == Quantization::kFp8 ? KvType::kFp8 : KvType::kAuto;
    auto alone = ModelRunner::Open(OnGpu(options_, *gpu_, true, true));
    auto among = ModelRunner::Open(OnGpu(options_, *gpu_, true, true));
    ASSERT_TRUE(alone != nullptr && among != nullptr);
    const std::vector<float> whole = alone->Prefill(0, Prompt(40, 1), 64);
    for (std::size_t chunk : {33u, 7u}) {
      among->Reset(0);
      EXPECT_EQ(whole, among->Prefill(0, Prompt(40, 1), chunk)) << "chunks of " << chunk;
    }
    for (int step = 0; step < 3; ++step) {
      // The others: a decode step and a prompt, then decode steps.
      std::vector<ModelRunner::Feed> feeds = {{1, {50 + step}}, {0, {100 + step}}};
      if (step == 0) feeds.push_back({2, Prompt(40, 4)});
      const auto want = alone->Step({{0, {100 + step}}});
      EXPECT_EQ(want[0], among->Step(feeds)[1])
          << "step " << step << ", weights " << QuantizationName(form);
    }
  }
  // The emulated library has one order of additions for any number of rows. A device's has not.
  EXPECT_EQ(gpu_->library_products(), 0);
}

// Replaces the matrices that the backend quantizes by what it then computes with.
void QuantizeAndExpand(const Model& model, LoadedWeights& weights) {
  for (const Op& op : model.program.body) {
    const auto* linear = std::get_if<LinearOp>(&op);
    if (linear == nullptr) continue;
    const TensorView& view = weights.views[static_cast<std::size_t>(linear->weight)];
    const auto rows = static_cast<std::uint32_t>(view.shape[0]);
    const auto width = static_cast<std::uint32_t>(view.shape[1]);
    ASSERT_EQ(width % 64, 0u);
    SharedVector<std::byte> plain(view.Bytes());
    SharedVector<std::byte> stored(std::size_t{rows} * width);
    SharedVector<float> scales(rows);
    std::memcpy(plain.data(), view.data, view.Bytes());
    const FormArgs args{plain.data(), stored.data(), scales.data(),
                        rows,         width,         FormOf(model.quantization)};
    ASSERT_TRUE(QuantizeRows(args, nullptr).ok() && ExpandRows(args, nullptr).ok());
    ASSERT_TRUE(FinishKernels().ok());
    EXPECT_NE(std::memcmp(plain.data(), view.data, view.Bytes()), 0);
    std::memcpy(const_cast<void*>(view.data), plain.data(), view.Bytes());
  }
}

// In one step of more rows than the kernels of few rows take, in smaller ones, and in graphs.
TEST_F(CudaBackendTest, QuantizedWeightsAgreeWithTheReferenceOnThem) {
  MakeModel("qwen2", 0, DType::kBFloat16);  // with biases
  options_.max_step_tokens = 240;
  for (const Quantization form : {Quantization::kInt8, Quantization::kFp8}) {
    options_.quantization = form;
    RunnerOptions expanded = options_;
    expanded.make = [&](const Model& model, LoadedWeights weights) {
      QuantizeAndExpand(model, weights);
      return MakeBackend(options_, model, std::move(weights));
    };
    auto reference = ModelRunner::Open(expanded);
    auto cuda = ModelRunner::Open(OnGpu(options_, *gpu_));
    ASSERT_TRUE(reference != nullptr && cuda != nullptr);
    EXPECT_EQ(cuda->backend().Name(), "cuda/" + std::string(QuantizationName(form)));
    for (std::size_t chunk : {240u, 50u}) {
      reference->Reset(0);
      cuda->Reset(0);
      const int products = gpu_->library_products();
      EXPECT_LT(MaxDifference(reference->Prefill(0, Prompt(220, 1), chunk),
                              cuda->Prefill(0, Prompt(220, 1), chunk)),
                0.25f)
          << "chunks of " << chunk;
      // The head is not quantized.
      EXPECT_EQ(gpu_->library_products() - products > 5, chunk == 240u);
    }
    for (int step = 0; step < 3; ++step) {
      const std::vector<ModelRunner::Feed> feeds = {{0, {100 + step}}, {1, {50 + step}}};
      const auto want = reference->Step(feeds);
      const auto got = cuda->Step(feeds);
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_LT(MaxDifference(want[i], got[i]), 0.25f) << "step " << step;
      }
    }
  }
  EXPECT_GT(gpu_->graph_launches(), 0);
}

// Its values have three bits after the point.
TEST_F(CudaBackendTest, AnFp8CacheTakesHalfTheBytesAndChangesLogitsALittle) {
  MakeModel("llama", 0, DType::kBFloat16);
  options_.max_step_tokens = 40;
  auto plain = ModelRunner::Open(OnGpu(options_, *gpu_));
  const std::uint64_t plain_bytes = gpu_->newest().second;
  options_.kv_type = KvType::kFp8;
  auto eager = ModelRunner::Open(OnGpu(options_, *gpu_, false));
  auto graphs = ModelRunner::Open(OnGpu(options_, *gpu_));
  ASSERT_TRUE(plain != nullptr && eager != nullptr && graphs != nullptr);
  EXPECT_EQ(graphs->backend().Name(), "cuda/kv-fp8_e4m3fn");
  EXPECT_EQ(gpu_->newest().second * 2, plain_bytes);
  const std::vector<float> want = plain->Prefill(0, Prompt(60, 1), 40);
  const std::vector<float> got = graphs->Prefill(0, Prompt(60, 1), 40);
  EXPECT_EQ(got, eager->Prefill(0, Prompt(60, 1), 40));
  EXPECT_GT(MaxDifference(want, got), 0.0f);
  EXPECT_LT(MaxDifference(want, got), 1.0f);
  for (int step = 0; step < 3; ++step) {
    const std::vector<ModelRunner::Feed> feeds = {{0, {100 + step}}, {1, {50 + step}}};
    const auto expected = plain->Step(feeds);
    const auto logits = graphs->Step(feeds);
    EXPECT_EQ(logits, eager->Step(feeds)) << "step " << step;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      EXPECT_LT(MaxDifference(expected[i], logits[i]), 1.0f) << "step " << step;
    }
  }
  // Copied blocks have their bytes too.
  graphs->Prefill(2, Prompt(16, 1), 16);
  graphs->Prefill(3, Prompt(16, 2), 16);
  const BlockCopy copy{graphs->table(2)[0], graphs->table(3)[0]};
  ASSERT_TRUE(graphs->backend().CopyBlocks(std::vector<BlockCopy>{copy}).ok());
  EXPECT_EQ(graphs->Step({{3, {5}}}), graphs->Step({{2, {5}}}));
}

TEST(CheckKvTypeTest, NamesWhatIsThere) {
  EXPECT_TRUE(CheckKvType(KvType::kFp8, AttentionKind::kFixed).ok());
  EXPECT_TRUE(CheckKvType(KvType::kAuto, AttentionKind::kFloat).ok());
  EXPECT_THAT(std::string(CheckKvType(KvType::kInt8, AttentionKind::kTensorCores).message()),
              HasSubstr("must be auto or fp8_e4m3fn on a GPU. Given: int8"));
  EXPECT_THAT(std::string(CheckKvType(KvType::kFp8, AttentionKind::kFloat).message()),
              HasSubstr("needs attention on tensor cores"));
}

TEST_F(CudaBackendTest, QuantizedWeightsTakeTheMemoryThatWasPlanned) {
  MakeModel("llama", 0, DType::kBFloat16);
  auto plain = ModelRunner::Open(OnGpu(options_, *gpu_));
  options_.quantization = Quantization::kFp8;
  auto quantized = ModelRunner::Open(OnGpu(options_, *gpu_));
  ASSERT_TRUE(plain != nullptr && quantized != nullptr);
  const Model& model = quantized->model();
  const auto bytes = [&](WeightForm form) {
    return DeviceWeightBytes(model.program, model.weight_plan, model.dtype, form);
  };
  EXPECT_EQ(plain->backend().MemoryBytes() - quantized->backend().MemoryBytes(),
            bytes(WeightForm::kPlain) - bytes(WeightForm::kFp8));
  EXPECT_LT(bytes(WeightForm::kFp8), bytes(WeightForm::kPlain) * 3 / 4);
}

TEST(CheckQuantizationTest, WantsBFloat16AndRefusesInt4) {
  EXPECT_EQ(CheckQuantization(Quantization::kInt4, DType::kBFloat16).message(),
            "--quantize int4: must be int8 or fp8 on a GPU; int4 is for backend cpu");
  EXPECT_TRUE(CheckQuantization(Quantization::kFp8, DType::kBFloat16).ok());
  EXPECT_TRUE(CheckQuantization(Quantization::kNone, DType::kFloat32).ok());
  EXPECT_EQ(CheckQuantization(Quantization::kFp8, DType::kFloat32).message(),
            "`quantize` fp8 on a GPU needs --dtype bfloat16; this model has float32");
}

TEST_F(CudaBackendTest, BatchInvarianceRefusesFloat32) {
  MakeModel("llama");
  const auto model = Model::Open({.folder = options_.folder});
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::Status status = CheckBatchInvariant(model->program, model->dtype);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("--dtype bfloat16"));
}

// Bfloat16: attention on tensor cores, in chunks and in items, eager and recorded. Logits reach 10,
// where neighbours in bfloat16 are 0.06 apart.
TEST_F(CudaBackendTest, TensorCoresAgreeWithTheReference) {
  MakeModel("mistral", 24, DType::kBFloat16);
  options_.max_step_tokens = 40;  // more rows than become items
  auto reference = ModelRunner::Open(options_);
  auto eager = ModelRunner::Open(OnGpu(options_, *gpu_, false));
  auto graphs = ModelRunner::Open(OnGpu(options_, *gpu_));
  ASSERT_TRUE(reference != nullptr && eager != nullptr && graphs != nullptr);
  const std::vector<float> prefilled = graphs->Prefill(0, Prompt(60, 1), 40);
  EXPECT_LT(MaxDifference(reference->Prefill(0, Prompt(60, 1), 40), prefilled), 0.25f);
  eager->Prefill(0, Prompt(60, 1), 40);
  for (int step = 0; step < 3; ++step) {
    const std::vector<ModelRunner::Feed> feeds = {{0, {100 + step}}, {1, {50 + step}}};
    const auto want = reference->Step(feeds);
    const auto got = graphs->Step(feeds);
    EXPECT_EQ(got, eager->Step(feeds)) << "step " << step;
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_LT(MaxDifference(want[i], got[i]), 0.25f) << "step " << step;
    }
  }
  EXPECT_GT(gpu_->graph_launches(), 0);
}

TEST_F(CudaBackendTest, PaddingRowsWriteNoBlockOfASequence) {
  MakeModel("llama");
  auto graphs = ModelRunner::Open(OnGpu(options_, *gpu_));
  auto eager = ModelRunner::Open(OnGpu(options_, *gpu_, false));
  ASSERT_TRUE(eager != nullptr && graphs != nullptr);
  for (ModelRunner* runner : {graphs.get(), eager.get()}) {
    // The first positions of sequence 0 lie where a wrong row would land first.
    for (int sequence = 0; sequence < 4; ++sequence) {
      std::vector<BlockId>& table = runner->table(sequence);
      std::replace(table.begin(), table.end(), BlockId(0), runner->table(0)[0]);
    }
    runner->table(0)[0] = BlockId(0);
    runner->Prefill(0, Prompt(16, 1), 16);
    runner->Prefill(1, Prompt(16, 2), 16);
    runner->Prefill(2, Prompt(16, 3), 16);
    // Three decodes are padded to four rows, several times, while sequence 3 owns no token yet.
    for (int i = 0; i < 3; ++i) runner->Step({{0, {9}}, {1, {9}}, {2, {9}}});
  }
  // Products of three and of four rows may differ in their last bits.
  for (int sequence = 0; sequence < 4; ++sequence) {
    const auto next = std::vector<ModelRunner::Feed>{{sequence, {77}}};
    EXPECT_LT(MaxDifference(graphs->Step(next).at(0), eager->Step(next).at(0)), 1e-4f)
        << "sequence " << sequence;
  }
}

// Every byte of the cache but the new positions' and the scratch block's.
TEST_F(CudaBackendTest, PaddingRowsLeaveEveryByteOfTheCacheAsItWas) {
  MakeModel("llama");
  auto runner = ModelRunner::Open(OnGpu(options_, *gpu_));
  ASSERT_NE(runner, nullptr);
  const auto [cache, bytes] = gpu_->newest();
  const auto content = [&, cache = cache, bytes = bytes] {
    std::vector<std::byte> content(bytes);
    EXPECT_TRUE(gpu_->Download(content.data(), cache, bytes).ok());
    EXPECT_TRUE(gpu_->Synchronize().ok());
    return content;
  };
  constexpr std::size_t kBlock = 16;
  std::size_t blocks = 1;  // scratch
  for (int sequence = 0; sequence < 4; ++sequence) blocks += runner->table(sequence).size();
  const std::size_t rows = blocks * kBlock;
  const std::size_t arrays = 2 * runner->model().program.caches.size();
  const std::size_t row_bytes = bytes / arrays / rows;
  ASSERT_EQ(row_bytes * rows * arrays, bytes);
  std::vector<bool> may_change(rows);
  std::fill(may_change.end() - kBlock, may_change.end(), true);
  for (int sequence = 0; sequence < 3; ++sequence) {
    runner->Prefill(sequence, Prompt(kBlock, 1 + sequence), kBlock);
    for (std::size_t i = 0; i < 2; ++i) {
      may_change[runner->table(sequence)[1].value() * kBlock + i] = true;
    }
  }
  const std::vector<std::byte> before = content();
  const int launches = gpu_->graph_launches();
  for (int i = 0; i < 2; ++i) runner->Step({{0, {9}}, {1, {9}}, {2, {9}}});
  EXPECT_EQ(gpu_->graph_launches(), launches + 2);
  const std::vector<std::byte> after = content();
  std::set<std::size_t> changed;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (before[i] != after[i]) changed.insert(i / row_bytes % rows);
  }
  for (const std::size_t row : changed) EXPECT_TRUE(may_change[row]) << "cache row " << row;
  EXPECT_GE(changed.size(), 6u);
}

TEST_F(CudaBackendTest, GraphsGiveTheIdsOfEagerStepsForEveryBatch) {
  MakeModel("llama");
  options_.sequences = IsEmulated() ? 8 : 64;
  options_.max_step_tokens = 5 * options_.sequences;
  options_.max_sequence_length = 16;
  auto eager = ModelRunner::Open(OnGpu(options_, *gpu_, false));
  auto graphs = ModelRunner::Open(OnGpu(options_, *gpu_));
  ASSERT_TRUE(eager != nullptr && graphs != nullptr);
  const auto ids = [](ModelRunner& runner, std::uint32_t batch) {
    std::vector<TokenId> ids;
    std::vector<ModelRunner::Feed> feeds;
    for (std::uint32_t i = 0; i < batch; ++i) {
      runner.Reset(static_cast<int>(i));
      feeds.push_back({static_cast<int>(i), Prompt(5, static_cast<TokenId>(batch + 7 * i))});
    }
    for (int step = 0; step < 4; ++step) {
      const auto logits = runner.Step(feeds);
      for (std::uint32_t i = 0; i < batch; ++i) {
        ids.push_back(Argmax(logits[i]));
        feeds[i].tokens = {ids.back()};
      }
    }
    return ids;
  };
  for (std::uint32_t batch = 1; batch <= options_.sequences; batch += IsEmulated() ? 2 : 1) {
    const int launches = gpu_->graph_launches();
    EXPECT_EQ(ids(*graphs, batch), ids(*eager, batch)) << "batch of " << batch;
    EXPECT_EQ(gpu_->graph_launches(), launches + 3);
  }
}

TEST_F(CudaBackendTest, SteadyStateAllocatesNothingAndWaitsOncePerStep) {
  MakeModel("llama");
  auto runner = ModelRunner::Open(OnGpu(options_, *gpu_));
  ASSERT_NE(runner, nullptr);
  runner->Prefill(0, Prompt(16, 1), 16);
  const int allocations = gpu_->allocations();
  const int syncs = gpu_->syncs();
  const int uploads = gpu_->uploads();
  for (int i = 0; i < 5; ++i) runner->Step({{0, {9}}});
  EXPECT_EQ(gpu_->allocations(), allocations);
  EXPECT_EQ(gpu_->syncs(), syncs + 5);
  EXPECT_EQ(gpu_->uploads(), uploads + 2 * 5) << "the inputs, and what the rows ask of sampling";
}

TEST_F(CudaBackendTest, TwoRanksOnOneDeviceGiveTheLogitsOfOne) {
  MakeModel("llama");
  auto alone = ModelRunner::Open(OnGpu(options_, *gpu_));
  ASSERT_NE(alone, nullptr);
  const std::vector<float> want = alone->Prefill(0, Prompt(20, 1), 7);
  OnCommunicators(options_, 2, [&](Communicator& host, const RunnerOptions& options) {
    auto device = OpenTestDevice();
    ASSERT_TRUE(device.ok()) << device.status();
    const std::shared_ptr<Communicator> borrowed(&host, [](Communicator*) {});
    StagedCommunicator staged(borrowed, *device->gpu);
    auto rank = ModelRunner::Open(OnGpu(options, *device->gpu), &staged);
    ASSERT_NE(rank, nullptr);
    EXPECT_LT(MaxDifference(rank->Prefill(0, Prompt(20, 1), 7), want), 1e-4f);
  });
}

TEST_F(CudaBackendTest, CopiesBlocks) {
  MakeModel("llama");
  auto runner = ModelRunner::Open(OnGpu(options_, *gpu_));
  ASSERT_NE(runner, nullptr);
  runner->Prefill(0, Prompt(16, 1), 16);
  runner->Prefill(1, Prompt(16, 2), 16);
  const BlockCopy copy{runner->table(0)[0], runner->table(1)[0]};
  ASSERT_TRUE(runner->backend().CopyBlocks(std::vector<BlockCopy>{copy}).ok());
  EXPECT_EQ(runner->Step({{1, {5}}}), runner->Step({{0, {5}}}));
  const BlockCopy beyond{BlockId(0), BlockId(100000)};
  EXPECT_THAT(std::string(runner->backend().CopyBlocks(std::vector<BlockCopy>{beyond}).message()),
              HasSubstr("`block copy` must be below the cache's"));
}

TEST(CheckCudaBackendTest, NamesWhatItDoesNotSupport) {
  Program program;
  program.head.push_back(LinearOp{});  // else it would give vectors
  program.body.push_back(AttentionOp{.heads = {32, 1, 64, 64}});
  shard::HeadShape& heads = std::get<AttentionOp>(program.body.front()).heads;
  EXPECT_THAT(std::string(CheckCudaBackend(program, DType::kBFloat16).message()),
              HasSubstr("at most 16 query heads per KV head. Given: 32"));
  heads.kv_heads = 2;
  EXPECT_TRUE(CheckCudaBackend(program, DType::kBFloat16).ok());
  EXPECT_THAT(std::string(CheckCudaBackend(program, DType::kFloat16).message()),
              HasSubstr("not in float16"));
  heads.key_dim = heads.value_dim = 320;
  EXPECT_THAT(std::string(CheckCudaBackend(program, DType::kBFloat16).message()),
              HasSubstr("Given: 320"));
  program.body.push_back(AttentionOp{.heads = {32, 2, 64, 64}});
  EXPECT_THAT(std::string(CheckCudaBackend(program, DType::kBFloat16).message()),
              HasSubstr("heads that differ by layer"));
}

TEST(CheckCudaBackendTest, NamesOperationsWithoutKernels) {
  const std::pair<Op, std::string> cases[] = {
      {AttentionOp{.both_ways = true}, "attention in both directions"},
      {RopeKvWriteOp{.keys = false}, "layers that reuse K and V"},
      {LatentWriteOp{}, "latent attention"},
      {DeltaNetOp{}, "gated delta net"},
      {PositionsOp{.parts = 2}, "parts of texts"},
      {ExpertsOp{.routing = {.experts = 1025, .chosen = 1}}, "more than 1024 experts"},
      {ExpertsOp{.routing = {.experts = 64, .chosen = 33}}, "more than 32 experts of a token"}};
  for (const auto& [op, message] : cases) {
    Program program;
    program.head.push_back(LinearOp{});
    program.body.push_back(op);
    const absl::Status status = CheckCudaBackend(program, DType::kBFloat16);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(CheckCudaBackendTest, BatchInvarianceNeedsExpertsOfWholeSteps) {
  Program program;
  program.body.push_back(ExpertsOp{.width = 96});
  EXPECT_TRUE(CheckBatchInvariant(program, DType::kBFloat16).ok());
  std::get<ExpertsOp>(program.body.front()).width = 100;
  EXPECT_THAT(std::string(CheckBatchInvariant(program, DType::kBFloat16).message()),
              HasSubstr("and 100 columns"));
}

}  // namespace
}  // namespace penstock::shard::cuda
