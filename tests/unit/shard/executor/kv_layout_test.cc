// What a rank in the padded KV layout does otherwise than one in the paged layout.
#include "shard/executor/kv_layout.h"

#include <gmock/gmock.h>

#include "tests/unit/shard/executor/fake_backend.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

PagedLayout TwoLayers() { return {UniformCaches(2, 2, 8), 16, DType::kFloat32}; }

v1::Limits LimitsOf(std::uint32_t sequences, std::uint32_t longest) {
  v1::Limits limits;
  limits.set_max_sequences(sequences);
  limits.set_max_sequence_length(longest);
  return limits;
}

// 320 bytes a cell with its scratch, 4096 a block.
TEST(PaddedLayout, DividesTheCacheBetweenPromptsAndRows) {
  const auto plan = PaddedLayout().Plan(TwoLayers(), {}, 0, {RowStore::kDense, 64});
  const v1::Limits limits = LimitsOf(64, 128);
  EXPECT_EQ(plan->WantedBytes(limits), 64 * 128 * 320 * 4 / 3);
  const auto pool = plan->Fit(kMiB, limits);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->blocks[0], 64u);
  EXPECT_EQ(pool->cells, (kMiB - 64 * 4096) / 320);
  EXPECT_EQ(plan->LongestSequence(*pool, limits), 128u);
  EXPECT_EQ(plan->Describe(*pool),
            "64 blocks of 16 tokens for prompts and 2457 cells for rows (767.8 KiB), 1023.8 KiB");
  EXPECT_THAT(std::string(plan->Fit(4095, limits).status().message()),
              HasSubstr("must be at least one block of 4.0 KiB"));
}

TEST(PaddedLayout, RefusesModelsWithoutRows) {
  auto model = Model::Open({.folder = testing_support::SourcePath("demo/model")});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(PaddedLayout().Check(*model).ok());
  model->program.states.emplace_back();
  EXPECT_TRUE(absl::IsUnimplemented(PaddedLayout().Check(*model)));
  EXPECT_TRUE(KvLayout().Check(*model).ok());
  model->program.states.clear();
  model->pooling.emplace();
  EXPECT_THAT(std::string(PaddedLayout().Check(*model).message()),
              HasSubstr("`kv-layout` must be paged"));
}

TEST(PaddedLayout, WarmsUpDecodesInRows) {
  FakeBackend backend(10);
  WarmupShape shape;
  shape.max_step_tokens = 16;
  shape.max_sequences = 6;
  shape.max_sequence_length = 40;
  shape.block_size = 8;
  PoolSize pool;
  pool.blocks = 5;
  pool.cells = 60;
  PaddedLayout().LimitWarmup(pool, shape);
  const auto samples =
      RunWarmup(shape, backend,
                {[] { return true; }, [](bool mine) -> absl::StatusOr<bool> { return mine; }});
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(backend.most_rows, 6u);
  for (const FakeBackend::Recorded& batch : backend.batches) {
    for (const RaggedSegment& segment : batch.segments) {
      const bool decode = segment.query_count == 1 && segment.context_length > 0;
      EXPECT_EQ(segment.row, decode ? std::optional(segment.state) : std::nullopt);
    }
  }
}

TEST(PaddedLayout, WarmsUpNoMoreRowsThanCells) {
  WarmupShape shape;
  shape.max_sequences = 6;
  PoolSize pool;
  pool.cells = 4;
  PaddedLayout().LimitWarmup(pool, shape);
  EXPECT_EQ(shape.max_sequences, 4u);
  pool.cells = 1'000'000;
  PaddedLayout().LimitWarmup(pool, shape);
  EXPECT_EQ(shape.pool_tokens, 65'536u);
}

}  // namespace
}  // namespace penstock::shard
