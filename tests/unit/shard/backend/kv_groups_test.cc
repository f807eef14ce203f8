// Layers with a window in a KV group of their own: logits are those of one block table for all
// layers, although entries before the window have no block and their blocks hold other sequences.
// The checkpoints are those of model_goldens_test.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "common/plan/step_plan.h"
#include "common/status.h"
#include "shard/cache/paged/paged_layout.h"
#include "tests/unit/shard/backend/model_checkpoints.h"
#include "tests/unit/shard/backend/model_runner.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;
using Logits = std::vector<float>;

constexpr std::size_t kLength = 96;  // twelve windows of the checkpoints

std::vector<TokenId> Text(TokenId first) {
  std::vector<TokenId> text;
  for (std::size_t i = 0; i < kLength; ++i) {
    text.push_back(2 + (first + static_cast<TokenId>(i * i * 7 + i * 3)) % 200);
  }
  return text;
}

// A variant of a golden and its groups.
struct Variant {
  const char* name;
  std::uint32_t window;
  std::uint32_t full_caches, window_caches;
};

constexpr Variant kVariants[] = {
    {"gemma2-v4_softcaps", 8, 1, 2},   {"gemma3-v4_text", 8, 2, 4},
    {"gemma4-v5_shared", 8, 2, 2},     {"gpt_oss-v5_wide", 8, 2, 1},
    {"mistral-v4_defaults", 12, 0, 3}, {"mistral-v5_window", 8, 0, 3},
};

class KvGroups : public testing::TestWithParam<std::tuple<Runs, Variant>> {
 protected:
  static std::unique_ptr<ModelRunner> Open(bool window_tables) {
    RunnerOptions options;
    options.backend = std::get<0>(GetParam());
    options.folder = CheckpointFolder() + "/" + std::get<1>(GetParam()).name;
    options.dtype = DType::kFloat32;
    options.block_size = 4;
    options.max_step_tokens = 16;
    options.max_sequence_length = 128;
    options.window_tables = window_tables;
    return ModelRunner::Open(options);
  }

  // Logits of all steps of three texts that are computed together, in pieces of 1, 3 and 7.
  static std::vector<Logits> Together(ModelRunner& runner) {
    const std::vector<std::vector<TokenId>> texts = {Text(3), Text(40), Text(90)};
    const std::vector<std::size_t> chunks = {1, 3, 7};
    std::vector<std::size_t> done(texts.size(), 0);
    std::vector<Logits> all;
    while (done[0] < kLength) {
      std::vector<ModelRunner::Feed> feeds;
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (done[i] == kLength) continue;
        const std::size_t end = std::min(kLength, done[i] + chunks[i]);
        const auto begin = texts[i].begin();
        feeds.push_back({static_cast<int>(i),
                         {begin + static_cast<std::ptrdiff_t>(done[i]),
                          begin + static_cast<std::ptrdiff_t>(end)}});
        done[i] = end;
      }
      for (Logits& logits : runner.Step(feeds)) all.push_back(std::move(logits));
    }
    return all;
  }
};

TEST_P(KvGroups, LogitsAreThoseOfOneTable) {
  auto apart = Open(true);
  auto together = Open(false);
  ASSERT_NE(apart, nullptr);
  ASSERT_NE(together, nullptr);
  EXPECT_EQ(Together(*apart), Together(*together));
}

TEST_P(KvGroups, EachCacheIsInTheGroupOfItsWindow) {
  auto runner = Open(true);
  ASSERT_NE(runner, nullptr);
  const Variant& variant = std::get<1>(GetParam());
  const Program& program = runner->model().program;
  EXPECT_EQ(program.kv_window, variant.window);
  const auto windows = static_cast<std::uint32_t>(
      std::count_if(program.caches.begin(), program.caches.end(),
                    [](const CacheShape& cache) { return cache.kv_group == 1; }));
  EXPECT_EQ(windows, variant.window_caches);
  EXPECT_EQ(program.caches.size() - windows, variant.full_caches);
}

// Memory is that of each group's own blocks.
TEST_P(KvGroups, TakeOnlyTheMemoryOfTheirBlocks) {
  auto runner = Open(true);
  ASSERT_NE(runner, nullptr);
  const PagedLayout layout{runner->model().program.caches, 4, DType::kFloat32};
  const auto bytes = [&](const KvBlocks& blocks) {
    EXPECT_TRUE(runner->backend().AllocateCache(blocks).ok());
    return runner->backend().MemoryBytes();
  };
  const std::uint64_t few = bytes({1000, 1000});
  EXPECT_EQ(bytes({3000, 1000}) - few, 2000 * layout.GroupBytesPerBlock(0));
  EXPECT_EQ(bytes({1000, 3000}) - few, 2000 * layout.GroupBytesPerBlock(1));
}

TEST_P(KvGroups, AnEntryWithinTheWindowNeedsABlock) {
  auto runner = Open(true);
  ASSERT_NE(runner, nullptr);
  ASSERT_TRUE(runner->backend().AllocateCache({32, 32}).ok());
  const std::uint32_t window = runner->model().program.kv_window;
  std::vector<BlockId> blocks, windows;
  for (std::uint32_t i = 0; i < 16; ++i) blocks.push_back(BlockId(i));
  windows = blocks;
  const std::vector<TokenId> tokens = {7};
  const std::vector<std::uint32_t> rows = {0};
  // The row sees positions from 40 - window + 1 on.
  RaggedSegment segment{0, 1, 40, blocks};
  const std::uint32_t first = (40 - window + 1) / 4;
  std::fill_n(windows.begin(), first, kNoBlock);
  segment.window_blocks = windows;
  std::vector<RaggedSegment> segments = {segment};
  EXPECT_EQ(Message(runner->backend().Execute({tokens, segments, rows})), "");
  windows[first] = kNoBlock;
  EXPECT_THAT(Message(runner->backend().Execute({tokens, segments, rows})),
              HasSubstr("segment.window_blocks[" + std::to_string(first) + "]"));
}

TEST_P(KvGroups, CopiesAreOfOneGroup) {
  auto runner = Open(true);
  ASSERT_NE(runner, nullptr);
  ASSERT_TRUE(runner->backend().AllocateCache({4, 2}).ok());
  const auto copy = [&](std::uint32_t block, std::uint32_t group) {
    const BlockCopy one{BlockId(0), BlockId(block), group};
    return Message(runner->backend().CopyBlocks({&one, 1}));
  };
  EXPECT_EQ(copy(3, 0), "");
  EXPECT_EQ(copy(1, 1), "");
  EXPECT_THAT(copy(3, 1), HasSubstr("below the cache's 2"));
  EXPECT_THAT(copy(1, 2), HasSubstr("block copy.kv_group"));
}

// What a model keeps of a text, in bytes: `blocks` blocks of four tokens, and states.
std::uint64_t CacheBytes(const std::string& name, std::uint32_t blocks, Program& program) {
  RunnerOptions options;
  options.folder = CheckpointFolder() + "/" + name;
  options.dtype = DType::kFloat32;
  options.block_size = 4;
  options.max_sequence_length = 128;
  const auto runner = ModelRunner::Open(options);
  EXPECT_NE(runner, nullptr);
  if (runner == nullptr) return 0;
  program = runner->model().program;
  EXPECT_TRUE(runner->backend().AllocateCache(0).ok());
  const std::uint64_t without = runner->backend().MemoryBytes();
  EXPECT_TRUE(runner->backend().AllocateCache(blocks).ok());
  return runner->backend().MemoryBytes() - without;
}

TEST(CacheMemory, OfARecurrentModelIsThatOfItsFullLayersAndItsStates) {
  Program program;
  const std::uint64_t bytes = CacheBytes("qwen3_next-v5_dense_layer", 100, program);
  std::uint64_t floats = 0;  // of a token
  for (const Op& op : program.body) {
    if (const auto* write = std::get_if<RopeKvWriteOp>(&op)) {
      floats += write->heads.KeyWidth() + write->heads.ValueWidth();
    }
  }
  EXPECT_GT(floats, 0u);
  EXPECT_EQ(bytes,
            400 * floats * sizeof(float) + BackendLimits().max_sequences * program.StateBytes());
}

TEST(CacheMemory, OfLatentAttentionIsALatentAndARopeKeyPerToken) {
  Program program;
  const std::uint64_t bytes = CacheBytes("deepseek_v2-v5_default_rope", 100, program);
  std::uint64_t floats = 0;
  for (const Op& op : program.body) {
    if (const auto* write = std::get_if<LatentWriteOp>(&op)) {
      floats += write->latent_dim + write->rope_dim;
    }
  }
  EXPECT_GT(floats, 0u);
  EXPECT_EQ(bytes, 400 * floats * sizeof(float));
}

INSTANTIATE_TEST_SUITE_P(Models, KvGroups,
                         testing::Combine(testing::Values(Runs::kReference, Runs::kCpu),
                                          testing::ValuesIn(kVariants)),
                         [](const auto& info) {
                           std::string name = std::get<1>(info.param).name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           const bool cpu = std::get<0>(info.param) == Runs::kCpu;
                           return name + (cpu ? "_cpu" : "_reference");
                         });

}  // namespace
}  // namespace penstock::shard
