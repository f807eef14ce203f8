// The promises of Backend besides right logits.
#include "shard/backend/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "shard/weights/safetensors_writer.h"
#include "tests/unit/shard/backend/model_runner.h"
#include "tests/unit/support/temp_folder.h"
#include "tools/make-model/make_model.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;

std::vector<TokenId> Prompt(std::size_t size, TokenId first) {
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < size; ++i) {
    tokens.push_back(static_cast<TokenId>((first + 37 * i) % 250 + 3));
  }
  return tokens;
}

class BackendTest : public testing::TestWithParam<Runs> {
 protected:
  void SetUp() override { options_.backend = GetParam(); }

  // A tiny model of that type in float32.
  std::unique_ptr<ModelRunner> Make(const std::string& type, std::uint32_t sliding_window = 0) {
    make_model::ModelOptions config;
    config.output = options_.folder = folder_.path();
    config.type = type;
    config.dtype = DType::kFloat32;
    config.seed = 11;
    config.sliding_window = sliding_window;
    config.overwrite = true;
    const auto made = make_model::MakeModel(config, nullptr);
    EXPECT_TRUE(made.ok()) << made.status();
    return ModelRunner::Open(options_);
  }

  // Gives every projection of the made model a bias, as `attention_bias` and `mlp_bias` do.
  void AddBiases() {
    auto checkpoint = Checkpoint::Open(folder_.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    std::vector<TensorSpec> table;
    std::string data;
    for (const CheckpointTensor& tensor : checkpoint->tensors()) {
      const std::string& name = tensor.info->name;
      table.push_back({name, DType::kFloat32, tensor.info->shape});
      const std::size_t begin = data.size();
      data.resize(begin + tensor.info->bytes);
      ASSERT_TRUE(checkpoint->Read(tensor, 0, tensor.info->bytes, data.data() + begin).ok());
      if (name.find("_proj.weight") == std::string::npos) continue;
      const std::uint64_t rows = tensor.info->shape[0];
      table.push_back({name.substr(0, name.size() - 6) + "bias", DType::kFloat32, {rows}});
      for (std::uint64_t i = 0; i < rows; ++i) {
        const float value = static_cast<float>(i % 7) * 0.1f - 0.2f;
        data.append(reinterpret_cast<const char*>(&value), sizeof(value));
      }
    }
    SafetensorsWriter writer(folder_ / "model.safetensors", table);
    writer.Append(std::as_bytes(std::span(data)));
    ASSERT_TRUE(writer.Finish().ok());
  }

  TempFolder folder_;
  RunnerOptions options_;
};

TEST_P(BackendTest, BatchMatesDoNotChangeABitInFloat32) {
  for (const char* type : {"llama", "qwen2", "qwen3", "mistral", "gpt_neox"}) {
    auto runner = Make(type);
    ASSERT_NE(runner, nullptr);
    std::vector<std::vector<float>> alone = {runner->Prefill(0, Prompt(30, 1), 128)};
    for (int i = 0; i < 40; ++i) {
      alone.push_back(runner->Step({{0, {Argmax(alone.back())}}}).at(0));
    }
    // Again, in other blocks, while others come, are prefilled and go.
    std::vector<float> logits = runner->Prefill(1, Prompt(30, 1), 128);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      ASSERT_EQ(logits, alone[i]) << type << ", token " << i;
      std::vector<ModelRunner::Feed> feeds = {{1, {Argmax(logits)}}};
      if (i == 5) feeds.insert(feeds.begin(), {2, Prompt(50, 9)});
      if (i == 6) feeds.push_back({3, Prompt(17, 4)});
      if (i > 8 && i < 30) feeds.insert(feeds.begin(), {{3, {100}}, {2, {200}}});
      const std::size_t mine = static_cast<std::size_t>(
          std::find_if(feeds.begin(), feeds.end(),
                       [](const auto& feed) { return feed.sequence == 1; }) -
          feeds.begin());
      logits = runner->Step(feeds).at(mine);
    }
  }
}

TEST_P(BackendTest, WindowsAndChunksAgreeWithOneTokenAtATime) {
  for (std::uint32_t window : {0u, 1u, 24u, 100u}) {
    auto runner = Make("mistral", window);
    ASSERT_NE(runner, nullptr);
    const auto tokens = Prompt(120, 2);
    const std::vector<float> single = runner->Prefill(0, tokens, 1);
    for (std::size_t chunk : {5u, 64u, 65u, 120u}) {
      runner->Reset(1);
      EXPECT_LT(MaxDifference(runner->Prefill(1, tokens, chunk), single), 1e-4f)
          << "window " << window << ", chunk " << chunk;
    }
    // Two layers of window 24 reach back 46 tokens from 119: 72 must not count, 73 must.
    if (window != 24) continue;
    auto changed = tokens;
    changed[72] = 7;
    runner->Reset(2);
    EXPECT_EQ(MaxDifference(runner->Prefill(2, changed, 1), single), 0.0f);
    changed[73] = 7;
    runner->Reset(2);
    EXPECT_GT(MaxDifference(runner->Prefill(2, changed, 1), single), 0.0f);
  }
}

TEST_P(BackendTest, ALongContextUsesSmallerTiles) {
  options_.max_sequence_length = 2400;
  options_.max_step_tokens = 400;
  auto runner = Make("llama");
  ASSERT_NE(runner, nullptr);
  const auto tokens = Prompt(2400, 1);
  const std::vector<float> chunked = runner->Prefill(0, tokens, 400);
  runner->Prefill(1, {tokens.begin(), tokens.end() - 1}, 400);
  EXPECT_LT(MaxDifference(runner->Step({{1, {tokens.back()}}}).at(0), chunked), 1e-4f);
}

TEST_P(BackendTest, CopiedBlocksHoldTheSameKeysAndValues) {
  auto runner = Make("llama");
  ASSERT_NE(runner, nullptr);
  runner->Prefill(0, Prompt(40, 3), 128);
  runner->Prefill(1, Prompt(40, 77), 128);
  std::vector<BlockCopy> copies;
  for (int i = 0; i < 3; ++i) copies.push_back({runner->table(0)[i], runner->table(1)[i]});
  ASSERT_TRUE(runner->backend().CopyBlocks(copies).ok());
  EXPECT_EQ(runner->Step({{1, {9}}}).at(0), runner->Step({{0, {9}}}).at(0));
  const std::vector<BlockCopy> beyond = {{BlockId(0), BlockId(1u << 20)}};
  EXPECT_THAT(Message(runner->backend().CopyBlocks(beyond)), HasSubstr("below the cache's"));
}

TEST_P(BackendTest, LogitsCanBeReadInParts) {
  auto runner = Make("qwen3");
  ASSERT_NE(runner, nullptr);
  Backend& backend = runner->backend();
  const auto tokens = Prompt(20, 5);
  RaggedSegment segment;
  segment.query_count = 20;
  segment.blocks = runner->table(0);
  std::vector<std::uint32_t> rows(20);
  for (std::uint32_t i = 0; i < 20; ++i) rows[i] = i;
  ASSERT_TRUE(backend.Execute({tokens, {&segment, 1}, rows}).ok());
  std::vector<float> pieces;
  for (std::uint32_t first = 0; first < 20; first += 8) {
    auto view = backend.Logits(first, std::min(8u, 20 - first));
    ASSERT_TRUE(view.ok()) << view.status();
    const auto* data = static_cast<const float*>(view->data);
    pieces.insert(pieces.end(), data, data + view->Elements());
  }
  for (std::uint32_t i = 0; i < 20; ++i) {
    auto view = backend.Logits(i, 1);
    ASSERT_TRUE(view.ok()) << view.status();
    const auto* data = static_cast<const float*>(view->data);
    const std::size_t width = static_cast<std::size_t>(view->shape[1]);
    EXPECT_EQ(std::vector<float>(data, data + width),
              std::vector<float>(pieces.begin() + i * width, pieces.begin() + (i + 1) * width));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(backend.Logits(0, 9).status()));   // max_logit_rows is 8
  EXPECT_TRUE(absl::IsInvalidArgument(backend.Logits(19, 2).status()));  // beyond the batch
  EXPECT_TRUE(absl::IsInvalidArgument(backend.Logits(0, 0).status()));
}

TEST_P(BackendTest, NamesTheFieldOfABadBatchAndStaysUsable) {
  options_.max_step_tokens = 8;
  options_.max_sequence_length = 64;
  auto runner = Make("llama");
  ASSERT_NE(runner, nullptr);
  const std::vector<BlockId> blocks = runner->table(0);
  const std::vector<BlockId> outside = {BlockId(1000)};
  struct Case {
    std::vector<TokenId> tokens;
    std::vector<RaggedSegment> segments;
    std::vector<std::uint32_t> rows;
    const char* message;
  };
  const std::vector<Case> cases = {
      {{}, {}, {}, "`tokens` must be 1 to 8"},
      {std::vector<TokenId>(9, 1), {{0, 9, 0, blocks}}, {}, "`tokens` must be 1 to 8. Given: 9"},
      {{320}, {{0, 1, 0, blocks}}, {}, "`token id` must be from 0 to 319. Given: 320"},
      {{-1}, {{0, 1, 0, blocks}}, {}, "Given: -1"},
      {{1, 2}, {{0, 1, 0, blocks}}, {}, "`segments` must be as many as tokens, 2. Given: 1"},
      {{1, 2}, {{1, 2, 0, blocks}}, {}, "`segment.query_start` must be"},
      {{1}, {{0, 0, 0, blocks}, {0, 1, 0, blocks}}, {}, "`segment.query_start` must be"},
      {{1}, {{0, 1, 64, blocks}}, {}, "`segment length` must be at most 64. Given: 65"},
      {{1}, {{0, 1, 0, {}}}, {}, "`segment.blocks` must be at least 1. Given: 0 entries"},
      {{1}, {{0, 1, 0, outside}}, {}, "`segment.blocks[0]` must be below the cache's"},
      {{1, 2}, {{0, 2, 0, blocks}}, {1, 0}, "`logit_rows` must be ascending"},
      {{1, 2}, {{0, 2, 0, blocks}}, {2}, "`logit_rows` must be ascending"},
  };
  for (const Case& test : cases) {
    const absl::Status status = runner->backend().Execute({test.tokens, test.segments, test.rows});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << test.message;
    EXPECT_THAT(Message(status), HasSubstr(test.message));
    EXPECT_FALSE(runner->backend().Logits(0, 1).ok());
  }
  EXPECT_EQ(runner->Step({{0, {1, 2, 3}}}).size(), 1u);
}

TEST_P(BackendTest, AGroupCanFormAgain) {
  auto runner = Make("llama");
  ASSERT_NE(runner, nullptr);
  const auto before = runner->Prefill(0, Prompt(30, 1), 128);
  ASSERT_TRUE(runner->backend().Prepare({256, 512, 8}, nullptr).ok());
  ASSERT_TRUE(runner->backend().AllocateCache(128).ok());
  runner->Reset(0);
  EXPECT_EQ(runner->Prefill(0, Prompt(30, 1), 128), before);
  // 128 blocks of 16 tokens, 2 layers, K and V, 4 heads of 16 floats.
  const std::uint64_t cache = 128u * 16 * 2 * 2 * 4 * 16 * 4;
  EXPECT_GT(runner->backend().MemoryBytes(), cache + runner->model().parameters * 4);
}

TEST_P(BackendTest, TooLittleMemoryIsAStatus) {
  auto runner = Make("llama");
  ASSERT_NE(runner, nullptr);
  const absl::Status status = runner->backend().AllocateCache(0xffffffff);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  ASSERT_TRUE(runner->backend().AllocateCache(128).ok());
  EXPECT_EQ(runner->Step({{0, {1}}}).size(), 1u);
}

// The bias of a linear layer whose result is summed over the ranks must be added once.
TEST_P(BackendTest, BiasesOfEveryProjectionCountOnceOnAnyNumberOfRanks) {
  auto plain = Make("llama");
  ASSERT_NE(plain, nullptr);
  const auto tokens = Prompt(30, 1);
  const std::vector<float> without = plain->Prefill(0, tokens, 128);
  AddBiases();
  auto runner = ModelRunner::Open(options_);
  ASSERT_NE(runner, nullptr);
  const std::vector<float> with = runner->Prefill(0, tokens, 128);
  EXPECT_GT(MaxDifference(with, without), 0.1f);
  for (std::uint32_t world : {2u, 4u}) {
    OnRanks(options_, world, [&](ModelRunner& rank) {
      EXPECT_LT(MaxDifference(rank.Prefill(0, tokens, 128), with), 1e-4f) << world << " ranks";
    });
  }
}

TEST_P(BackendTest, ALostRankIsAnError) {
  ASSERT_NE(Make("llama"), nullptr);
  OnRanks(options_, 2, [](ModelRunner& runner) {
    if (runner.model().part.rank == 1) return;  // leaves; its communicator goes with it
    const std::vector<TokenId> token = {1};
    RaggedSegment segment;
    segment.query_count = 1;
    segment.blocks = runner.table(0);
    EXPECT_FALSE(runner.backend().Execute({token, {&segment, 1}, {}}).ok());
  });
}

TEST_P(BackendTest, SeveralRanksNeedACommunicator) {
  ASSERT_NE(Make("llama"), nullptr);
  auto model = Model::Open({folder_.path(), std::nullopt, Device(), 0, 2});
  ASSERT_TRUE(model.ok());
  auto weights = model->Load(nullptr);
  ASSERT_TRUE(weights.ok());
  auto backend = MakeBackend(options_, *model, std::move(*weights));
  ASSERT_TRUE(backend.ok());
  EXPECT_TRUE(absl::IsInternal((*backend)->Prepare({}, nullptr)));
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendTest, testing::Values(Runs::kReference, Runs::kCpu),
                         BackendName);

}  // namespace
}  // namespace penstock::shard
