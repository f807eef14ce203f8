#include "shard/backend/cuda/paged_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/shard/backend/cuda/device_values.h"

namespace penstock::shard::cuda {
namespace {

struct Case {
  std::string name;
  HeadShape shape;
  std::uint32_t window = 0;
  DType dtype = DType::kFloat32;
  std::uint32_t block_size = 16;
};

struct Part {
  std::uint32_t context;
  std::uint32_t rows;
};

// A cache with shuffled blocks, and queries over it.
class AttentionBatch {
 public:
  AttentionBatch(const Case& c, const std::vector<Part>& parts, unsigned seed)
      : case_(c), parts_(parts), generator_(seed) {
    std::uint32_t blocks = 0;
    for (const Part& part : parts) {
      rows_ += part.rows;
      blocks += BlocksOf(part);
    }
    std::vector<std::uint32_t> order(blocks);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), generator_);
    tables_ = order;
    const std::size_t cache = std::size_t{blocks} * c.block_size * c.shape.kv_heads;
    keys_ = Values::Random(cache * c.shape.head_dim, c.dtype, 1.0f, generator_);
    values_ = Values::Random(cache * c.shape.head_dim, c.dtype, 1.0f, generator_);
    qkv_ = Values::Random(std::size_t{rows_} * RowHeads() * c.shape.head_dim, c.dtype, 1.0f,
                          generator_);
  }

  Values Run() {
    std::vector<RaggedSegment> segments;
    std::uint32_t row = 0, table = 0;
    std::vector<std::uint32_t> starts;
    for (const Part& part : parts_) {
      segments.push_back({row, part.rows, part.context, {}});
      starts.push_back(table);
      row += part.rows;
      table += BlocksOf(part);
    }
    return Run(segments, starts);
  }

  // The one sequence of the batch in chunks of `chunk` rows, as segments of one step.
  Values RunInChunks(std::uint32_t chunk) {
    std::vector<RaggedSegment> segments;
    for (std::uint32_t row = 0; row < rows_; row += chunk) {
      segments.push_back({row, std::min(chunk, rows_ - row), parts_[0].context + row, {}});
    }
    return Run(segments, std::vector<std::uint32_t>(segments.size(), 0));
  }

  Values Run(const std::vector<RaggedSegment>& segments, const std::vector<std::uint32_t>& starts) {
    const AttentionWork work = PlanAttention(segments, starts, case_.shape, case_.window);
    SharedVector<float> workspace(WorkspaceFloats(work.items.size(), case_.shape), std::nanf(""));
    Values out =
        Values::Zeros(std::size_t{rows_} * case_.shape.heads * case_.shape.head_dim, case_.dtype);
    const auto shared = [](const auto& values) {
      using T = typename std::decay_t<decltype(values)>::value_type;
      return SharedVector<T>(values.begin(), values.end());
    };
    const auto tiles = shared(work.tiles);
    const auto items = shared(work.items);
    const auto row_tiles = shared(work.row_tiles);
    const auto blocks = shared(tables_);
    AttentionArgs args;
    args.qkv = qkv_.data();
    args.keys = keys_.data();
    args.values = values_.data();
    args.out = out.data();
    args.tiles = tiles.data();
    args.items = items.data();
    args.row_tiles = row_tiles.data();
    args.blocks = blocks.data();
    args.workspace = workspace.data();
    args.item_count = static_cast<std::uint32_t>(work.items.size());
    args.rows = rows_;
    args.block_size = case_.block_size;
    args.window = case_.window;
    args.scale = kScale;
    args.shape = case_.shape;
    EXPECT_TRUE(PagedAttention(args, case_.dtype, nullptr).ok());
    EXPECT_TRUE(FinishKernels().ok());
    return out;
  }

  // Output of one row and head in double precision.
  std::vector<double> Expected(std::uint32_t part_index, std::uint32_t row, std::uint32_t head) {
    std::uint32_t first_row = 0, table = 0;
    for (std::uint32_t i = 0; i < part_index; ++i) {
      first_row += parts_[i].rows;
      table += BlocksOf(parts_[i]);
    }
    const std::uint32_t own = parts_[part_index].context + row;
    const std::uint32_t begin =
        case_.window == 0 || own < case_.window ? 0 : own - case_.window + 1;
    const std::size_t dim = case_.shape.head_dim;
    const std::size_t query = (std::size_t{first_row + row} * RowHeads() + head) * dim;
    const std::uint32_t kv_head = head / (case_.shape.heads / case_.shape.kv_heads);
    const auto cache_row = [&](std::uint32_t position) {
      const std::size_t block = tables_[table + position / case_.block_size];
      return ((block * case_.block_size + position % case_.block_size) * case_.shape.kv_heads +
              kv_head) *
             dim;
    };
    std::vector<double> weights;
    for (std::uint32_t p = begin; p <= own; ++p) {
      double score = 0;
      for (std::size_t d = 0; d < dim; ++d) score += qkv_[query + d] * keys_[cache_row(p) + d];
      weights.push_back(score * kScale);
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double total = 0;
    for (double& weight : weights) total += weight = std::exp(weight - largest);
    std::vector<double> out(dim);
    for (std::uint32_t p = begin; p <= own; ++p) {
      for (std::size_t d = 0; d < dim; ++d) {
        out[d] += weights[p - begin] / total * values_[cache_row(p) + d];
      }
    }
    return out;
  }

 private:
  static constexpr float kScale = 0.3f;
  std::uint32_t BlocksOf(const Part& part) const {
    return (part.context + part.rows + case_.block_size - 1) / case_.block_size;
  }
  std::uint32_t RowHeads() const { return case_.shape.heads + 2 * case_.shape.kv_heads; }

  Case case_;
  std::vector<Part> parts_;
  std::mt19937 generator_;
  std::uint32_t rows_ = 0;
  std::vector<std::uint32_t> tables_;
  Values keys_ = Values::Zeros(0, DType::kFloat32);
  Values values_ = Values::Zeros(0, DType::kFloat32);
  Values qkv_ = Values::Zeros(0, DType::kFloat32);
};

class PagedAttentionTest : public testing::TestWithParam<Case> {};

TEST_P(PagedAttentionTest, EqualsPlainAttention) {
  PENSTOCK_DEVICE_OR_SKIP();
  const Case& c = GetParam();
  // Decodes at block and partition edges, the first token, a chunk inside and one across a
  // partition.
  const std::vector<Part> parts = {{0, 1}, {15, 1}, {16, 1}, {255, 1}, {256, 1}, {0, 7}, {250, 9}};
  AttentionBatch batch(c, parts, 7);
  const Values out = batch.Run();
  const double tolerance = c.dtype == DType::kFloat32 ? 2e-5 : 1e-2;
  std::uint32_t row = 0;
  for (std::uint32_t part = 0; part < parts.size(); ++part) {
    for (std::uint32_t i = 0; i < parts[part].rows; ++i, ++row) {
      for (std::uint32_t head = 0; head < c.shape.heads; ++head) {
        const std::vector<double> want = batch.Expected(part, i, head);
        for (std::size_t d = 0; d < want.size(); ++d) {
          const std::size_t at = (std::size_t{row} * c.shape.heads + head) * want.size() + d;
          ASSERT_NEAR(out[at], want[d], tolerance)
              << "sequence " << part << " row " << i << " head " << head << " dimension " << d;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PagedAttentionTest,
                         testing::Values(Case{"Dim64", {2, 2, 64}}, Case{"Dim80Group4", {4, 1, 80}},
                                         Case{"Dim96Window", {2, 1, 96}, 40},
                                         Case{"Dim128Group16", {16, 1, 128}},
                                         Case{"Dim256", {1, 1, 256}}, Case{"Group5", {5, 1, 8}},
                                         Case{"WindowOverPartitions", {2, 2, 16}, 300},
                                         Case{"Bf16", {4, 2, 64}, 0, DType::kBFloat16},
                                         Case{"Blocks32", {2, 2, 16}, 0, DType::kFloat32, 32}),
                         [](const auto& param) { return param.param.name; });

TEST(PagedAttentionBitsTest, DoNotDependOnTheCutOfThePrompt) {
  PENSTOCK_DEVICE_OR_SKIP();
  AttentionBatch batch({"", {4, 2, 32}}, {{3, 300}}, 11);
  const Values whole = batch.Run();
  for (std::uint32_t chunk : {1u, 7u, 64u}) {
    const Values cut = batch.RunInChunks(chunk);
    for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_EQ(whole[i], cut[i]) << chunk;
  }
}

TEST(PlanAttentionTest, WorksOnWhatTheWindowShowsAlone) {
  const HeadShape shape{8, 2, 64};  // 4 heads per KV head: tiles of 4 rows
  const std::vector<RaggedSegment> segments = {{0, 1, 1000, {}}, {1, 6, 510, {}}};
  const AttentionWork all = PlanAttention(segments, std::vector<std::uint32_t>{0, 63}, shape, 0);
  ASSERT_EQ(all.tiles.size(), 3u);
  EXPECT_EQ(all.tiles[0].partitions, 4u);
  EXPECT_EQ(all.tiles[1].rows, 4u);
  EXPECT_EQ(all.tiles[1].partitions, 3u) << "positions 510 to 513 reach into the third";
  EXPECT_EQ(all.tiles[2].table, 63u);
  EXPECT_EQ(all.row_tiles, (std::vector<std::uint32_t>{0, 1, 1, 1, 1, 2, 2}));
  const AttentionWork near = PlanAttention(segments, std::vector<std::uint32_t>{0, 63}, shape, 100);
  EXPECT_EQ(near.tiles[0].first_partition, 3u);
  EXPECT_EQ(near.tiles[0].partitions, 1u);
}

}  // namespace
}  // namespace penstock::shard::cuda
