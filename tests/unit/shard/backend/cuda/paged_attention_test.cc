#include "shard/backend/cuda/paged_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/shard/backend/cuda/device_values.h"
#include "tests/unit/shard/backend/cuda/fp8_values.h"

namespace penstock::shard::cuda {
namespace {

struct Case {
  std::string name;
  HeadShape shape;
  std::uint32_t window = 0;
  DType dtype = DType::kFloat32;
  std::uint32_t block_size = 16;
  // As in AttentionArgs.
  std::uint32_t chunk = 0;
  float softcap = 0.0f;
  bool sinks = false;
  bool slopes = false;
  float rounded_scale = 0.0f;

  bool IsAdjusted() const { return chunk > 0 || softcap != 0.0f || sinks || slopes; }
  AttentionKind Kind() const { return AttentionKindOf(dtype, shape, block_size, IsAdjusted()); }
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

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
    if (c.sinks) sinks_ = Values::Random(c.shape.heads, c.dtype, 4.0f, generator_);
    for (std::uint32_t i = 0; c.slopes && i < c.shape.heads; ++i) {
      slopes_.push_back(1.0f / static_cast<float>(3 + 2 * i));
    }
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
    const AttentionKind kind = case_.Kind();
    const AttentionWork work =
        PlanAttention(segments, starts, case_.shape, case_.window, kind, case_.chunk);
    SharedVector<float> workspace(WorkspaceFloats(work.items.size(), case_.shape), std::nanf(""));
    Values out =
        Values::Zeros(std::size_t{rows_} * case_.shape.heads * case_.shape.head_dim, case_.dtype);
    const auto shared = [](const auto& values) {
      using T = typename std::decay_t<decltype(values)>::value_type;
      return SharedVector<T>(values.begin(), values.end());
    };
    const auto tiles = shared(work.tiles);
    const auto items = shared(work.items);
    const auto rows = shared(work.rows);
    const auto chunks = shared(work.chunks);
    const auto blocks = shared(tables_);
    AttentionArgs args;
    args.qkv = qkv_.data();
    args.keys = keys_.data();
    args.values = values_.data();
    args.out = out.data();
    args.tiles = tiles.data();
    args.items = items.data();
    args.rows = rows.data();
    args.chunks = chunks.data();
    args.blocks = blocks.data();
    args.workspace = workspace.data();
    args.item_count = static_cast<std::uint32_t>(work.items.size());
    args.row_count = static_cast<std::uint32_t>(work.rows.size());
    args.chunk_count = static_cast<std::uint32_t>(work.chunks.size());
    args.block_size = case_.block_size;
    args.window = case_.window;
    args.scale = kScale;
    args.shape = case_.shape;
    args.kind = kind;
    args.chunk = case_.chunk;
    args.softcap = case_.softcap;
    args.rounded_scale = case_.rounded_scale;
    if (case_.sinks) args.sinks = sinks_.data();
    if (case_.slopes) args.slopes = slopes_.data();
    if (!key_codes_.empty()) {
      args.keys = key_codes_.data();
      args.values = value_codes_.data();
      args.fp8_cache = true;
    }
    EXPECT_TRUE(PagedAttention(args, case_.dtype, nullptr).ok());
    EXPECT_TRUE(FinishKernels().ok());
    return out;
  }

  const std::vector<Part>& parts() const { return parts_; }

  // K and V become values of e4m3 near 1. From UseCodes on the cache holds their codes.
  void MakeFp8() {
    std::uniform_int_distribution<int> draw(0x18, 0x3f);  // 0.06 to 1.9
    const auto make = [&](Values& values, SharedVector<std::uint8_t>& codes) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        codes.push_back(static_cast<std::uint8_t>(draw(generator_) | (i * 7 % 3 == 0 ? 0x80 : 0)));
        values.Set(i, Fp8Value(codes.back()));
      }
    };
    make(keys_, kept_key_codes_);
    make(values_, kept_value_codes_);
  }
  void UseCodes() {
    key_codes_ = kept_key_codes_;
    value_codes_ = kept_value_codes_;
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
        std::max(case_.window == 0 || own < case_.window ? 0 : own - case_.window + 1,
                 case_.chunk == 0 ? 0 : own / case_.chunk * case_.chunk);
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
      weights.push_back(Adjusted(score * kScale, head, p, own));
    }
    double largest = *std::max_element(weights.begin(), weights.end());
    if (case_.sinks) largest = std::max(largest, sinks_[head]);
    double total = case_.sinks ? std::exp(sinks_[head] - largest) : 0;
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

  double Adjusted(double score, std::uint32_t head, std::uint32_t position,
                  std::uint32_t own) const {
    if (case_.softcap != 0.0f) score = case_.softcap * std::tanh(score / case_.softcap);
    if (!case_.slopes) return score;
    if (case_.rounded_scale == 0.0f) {
      return score + slopes_[head] * (static_cast<double>(position) - own);
    }
    const auto rounded = [](float value) {
      Values values = Values::Zeros(1, DType::kBFloat16);
      values.SetRounded(0, value);
      return static_cast<float>(values[0]);
    };
    const float place = rounded(static_cast<float>(position));
    return score + double{rounded(rounded(slopes_[head]) * place)} * case_.rounded_scale;
  }
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
  Values sinks_ = Values::Zeros(0, DType::kFloat32);
  SharedVector<float> slopes_;
  SharedVector<std::uint8_t> kept_key_codes_, kept_value_codes_;
  SharedVector<std::uint8_t> key_codes_, value_codes_;  // empty: the cache is bfloat16
};

class PagedAttentionTest : public testing::TestWithParam<Case> {
 protected:
  // Weights that are rounded to bfloat16, then the output, are each off by up to 2^-9 of the
  // largest value, which is 1.
  static double Tolerance(const Case& c) {
    const bool tensor_cores = c.Kind() == AttentionKind::kTensorCores;
    return tensor_cores ? 4.2e-3 : c.dtype == DType::kFloat32 ? 2e-5 : 1e-2;
  }

  // Checks only some rows of long parts, at each place in a tile.
  static bool IsChecked(std::uint32_t row, std::uint32_t rows) {
    return row < 20 || row % 7 == 0 || row + 3 > rows;
  }

  static void ExpectPlain(const Case& c, AttentionBatch& batch) {
    const Values out = batch.Run();
    std::uint32_t row = 0;
    for (std::uint32_t part = 0; part < batch.parts().size(); ++part) {
      for (std::uint32_t i = 0; i < batch.parts()[part].rows; ++i, ++row) {
        if (!IsChecked(i, batch.parts()[part].rows)) continue;
        for (std::uint32_t head = 0; head < c.shape.heads; ++head) {
          const std::vector<double> want = batch.Expected(part, i, head);
          for (std::size_t d = 0; d < want.size(); ++d) {
            const std::size_t at = (std::size_t{row} * c.shape.heads + head) * want.size() + d;
            ASSERT_NEAR(out[at], want[d], Tolerance(c))
                << "sequence " << part << " row " << i << " head " << head << " dimension " << d;
          }
        }
      }
    }
  }
};

TEST_P(PagedAttentionTest, EqualsPlainAttention) {
  PENSTOCK_DEVICE_OR_SKIP();
  // Decodes at block and partition edges, the first token, a chunk inside and one across a
  // partition.
  AttentionBatch batch(GetParam(), {{0, 1}, {15, 1}, {16, 1}, {255, 1}, {256, 1}, {0, 7}, {250, 9}},
                       7);
  ExpectPlain(GetParam(), batch);
}

constexpr DType kBf16 = DType::kBFloat16;

INSTANTIATE_TEST_SUITE_P(Float, PagedAttentionTest,
                         testing::Values(Case{"Dim64", {2, 2, 64}}, Case{"Dim80Group4", {4, 1, 80}},
                                         Case{"Dim96Window", {2, 1, 96}, 40},
                                         Case{"Dim128Group16", {16, 1, 128}},
                                         Case{"Dim256", {1, 1, 256}}, Case{"Group5", {5, 1, 8}},
                                         Case{"WindowOverPartitions", {2, 2, 16}, 300},
                                         Case{"Bf16", {4, 2, 32}, 0, kBf16},
                                         Case{"Blocks32", {2, 2, 16}, 0, DType::kFloat32, 32}),
                         [](const auto& param) { return param.param.name; });

INSTANTIATE_TEST_SUITE_P(
    AdjustedFloat, PagedAttentionTest,
    testing::Values(
        Case{.name = "Softcap", .shape = {2, 1, 64}, .softcap = 1.5f},
        Case{.name = "SinksOverPartitions", .shape = {4, 2, 16}, .sinks = true},
        Case{.name = "Slopes", .shape = {6, 6, 8}, .slopes = true},
        Case{.name = "RoundedSlopes", .shape = {4, 1, 16}, .slopes = true, .rounded_scale = 0.25f},
        Case{.name = "ChunksAndWindow", .shape = {2, 2, 16}, .window = 50, .chunk = 37},
        Case{.name = "All",
             .shape = {2, 1, 32},
             .dtype = kBf16,
             .chunk = 200,
             .softcap = 2.0f,
             .sinks = true,
             .slopes = true}),
    [](const auto& param) { return param.param.name; });

class TensorAttentionTest : public PagedAttentionTest {};

TEST_P(TensorAttentionTest, EqualsPlainAttention) {
  PENSTOCK_DEVICE_OR_SKIP();
  // Decodes at edges of blocks and tiles, and drafts. Chunks from the start, after a prefix that
  // ends inside a block, and with rows that do not fill their last tile.
  AttentionBatch batch(
      GetParam(),
      {{0, 1}, {15, 1}, {16, 1}, {63, 1}, {64, 1}, {290, 1}, {60, 5}, {0, 67}, {45, 85}}, 7);
  ExpectPlain(GetParam(), batch);
}

INSTANTIATE_TEST_SUITE_P(Shapes, TensorAttentionTest,
                         testing::Values(Case{"Dim16Group16", {16, 1, 16}, 0, kBf16, 32},
                                         Case{"Dim64", {2, 2, 64}, 0, kBf16},
                                         Case{"Dim80Group4", {4, 1, 80}, 0, kBf16},
                                         Case{"Dim96Window", {2, 1, 96}, 40, kBf16},
                                         Case{"Dim128Group8", {8, 1, 128}, 0, kBf16, 32},
                                         Case{"Dim64Group5Window", {5, 1, 64}, 100, kBf16},
                                         Case{"Dim256", {1, 1, 256}, 0, kBf16},
                                         Case{"OnePositionBlocks", {3, 1, 16}, 7, kBf16, 1}),
                         [](const auto& param) { return param.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Adjusted, TensorAttentionTest,
    testing::Values(Case{.name = "Softcap", .shape = {4, 2, 256}, .dtype = kBf16, .softcap = 1.5f},
                    Case{.name = "SinksAndWindow",
                         .shape = {8, 1, 64},
                         .window = 128,
                         .dtype = kBf16,
                         .sinks = true},
                    Case{.name = "Sinks", .shape = {4, 2, 16}, .dtype = kBf16, .sinks = true},
                    Case{.name = "Slopes", .shape = {4, 4, 64}, .dtype = kBf16, .slopes = true},
                    Case{.name = "RoundedSlopes",
                         .shape = {8, 1, 64},
                         .dtype = kBf16,
                         .slopes = true,
                         .rounded_scale = 0.125f},
                    Case{.name = "Chunks", .shape = {5, 1, 128}, .dtype = kBf16, .chunk = 70},
                    Case{.name = "All",
                         .shape = {2, 1, 16},
                         .window = 90,
                         .dtype = kBf16,
                         .chunk = 100,
                         .softcap = 2.0f,
                         .sinks = true,
                         .slopes = true}),
    [](const auto& param) { return param.param.name; });

TEST_P(TensorAttentionTest, AnFp8CacheGivesTheBitsOfItsValues) {
  PENSTOCK_DEVICE_OR_SKIP();
  AttentionBatch batch(GetParam(), {{0, 1}, {63, 1}, {290, 1}, {60, 5}, {45, 85}}, 9);
  batch.MakeFp8();
  const Values want = batch.Run();
  batch.UseCodes();
  const Values got = batch.Run();
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_EQ(got[i], want[i]) << "element " << i;
}

TEST_F(TensorAttentionTest, ReadsLongPartitionsAndContexts) {
  PENSTOCK_DEVICE_OR_SKIP();
  // Enough sequences that partitions are longer than a tile.
  const Case many{"", {16, 16, 16}, 0, kBf16};
  std::vector<Part> parts;
  for (std::uint32_t i = 0; i < 18; ++i) parts.push_back({130 + 11 * i, 1});
  AttentionBatch batch(many, parts, 3);
  ExpectPlain(many, batch);
  const Case longest{"", {4, 1, 64}, 0, kBf16};
  AttentionBatch contexts(longest, {{8191, 1}, {3000, 17}}, 5);
  ExpectPlain(longest, contexts);
}

TEST(PagedAttentionBitsTest, DoNotDependOnTheCutOfThePrompt) {
  PENSTOCK_DEVICE_OR_SKIP();
  AttentionBatch batch({"", {4, 2, 32}}, {{3, 300}}, 11);
  const Values whole = batch.Run();
  for (std::uint32_t chunk : {1u, 7u, 64u}) {
    const Values cut = batch.RunInChunks(chunk);
    for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_EQ(whole[i], cut[i]) << chunk;
  }
}

TEST(PagedAttentionBitsTest, OfChunksOnTensorCoresDoNotEither) {
  PENSTOCK_DEVICE_OR_SKIP();
  AttentionBatch batch({"", {2, 1, 16}, 0, kBf16}, {{3, 300}}, 11);
  const Values whole = batch.Run();
  const Values cut = batch.RunInChunks(100);
  for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_EQ(whole[i], cut[i]);
}

const HeadShape kShape{8, 2, 64};  // 4 heads per KV head: tiles of 4 rows, chunks of 16

const AttentionTile& TileOf(const AttentionWork& work, std::uint32_t row) {
  return *std::find_if(work.tiles.begin(), work.tiles.end(), [row](const AttentionTile& tile) {
    return tile.first_row <= row && row < tile.first_row + tile.rows;
  });
}

TEST(PlanAttentionTest, PlansOnlyPositionsInTheWindow) {
  const std::vector<RaggedSegment> segments = {{0, 1, 1000, {}}, {1, 6, 510, {}}};
  const std::vector<std::uint32_t> tables = {0, 63};
  const AttentionWork all = PlanAttention(segments, tables, kShape, 0, AttentionKind::kFloat);
  ASSERT_EQ(all.tiles.size(), 3u);
  EXPECT_EQ(TileOf(all, 0).partitions, 4u);
  EXPECT_EQ(TileOf(all, 1).rows, 4u);
  EXPECT_EQ(TileOf(all, 1).partitions, 3u) << "positions 510 to 513 reach into the third";
  EXPECT_EQ(TileOf(all, 5).table, 63u);
  ASSERT_EQ(all.rows.size(), 7u);
  for (const AttentionRow& row : all.rows) {
    EXPECT_EQ(all.tiles[row.tile].first_row, TileOf(all, row.row).first_row);
  }
  const AttentionWork near = PlanAttention(segments, tables, kShape, 100, AttentionKind::kFloat);
  ASSERT_EQ(TileOf(near, 0).partitions, 1u);
  EXPECT_EQ(near.items[TileOf(near, 0).first_item].begin, 768u) << "901 is the first that is seen";
  const AttentionWork tensor =
      PlanAttention(segments, tables, kShape, 100, AttentionKind::kTensorCores);
  const AttentionTile& tile = TileOf(tensor, 0);
  EXPECT_EQ(tensor.items[tile.first_item].begin, 896u);
  EXPECT_EQ(tensor.items[tile.first_item + tile.partitions - 1].end, 1001u);
}

TEST(PlanAttentionTest, MakesChunksOfManyRowsAlone) {
  const std::vector<RaggedSegment> segments = {
      {0, 16, 500, {}}, {16, 17, 0, {}}, {33, 40, 900, {}}, {73, 1, 5, {}}};
  const AttentionWork work = PlanAttention(segments, std::vector<std::uint32_t>(4, 0), kShape, 0,
                                           AttentionKind::kTensorCores);
  EXPECT_EQ(work.tiles.size(), 5u) << "16 rows are four tiles";
  EXPECT_EQ(work.rows.size(), 17u);
  ASSERT_EQ(work.chunks.size(), 5u);
  EXPECT_EQ(work.chunks[0].first_position, 932u) << "the longest begins first";
  EXPECT_EQ(work.chunks[0].rows, 8u);
  EXPECT_EQ(work.chunks[4].first_position, 0u);
}

// The longest item against the mean work of a thread block that the device runs at once, and
// against one tile, the least that an item can be.
void ExpectEvenItems(const std::vector<std::uint32_t>& lengths, const HeadShape& shape) {
  std::vector<RaggedSegment> segments;
  std::uint64_t total = 0;
  for (std::uint32_t row = 0; row < lengths.size(); ++row) {
    segments.push_back({row, 1, lengths[row] - 1, {}});
    total += lengths[row];
  }
  const AttentionWork work = PlanAttention(segments, std::vector<std::uint32_t>(lengths.size(), 0),
                                           shape, 0, AttentionKind::kTensorCores);
  std::uint32_t longest = 0;
  for (const AttentionItem& item : work.items) longest = std::max(longest, item.end - item.begin);
  const double mean = static_cast<double>(total) * shape.kv_heads / kResidentBlocks;
  EXPECT_LE(longest, 1.3 * std::max<double>(mean, kPositionTile))
      << lengths.size() << " rows, mean " << mean;
  EXPECT_LE(work.items.size(), lengths.size() + MostSpareItems(shape.kv_heads));
  EXPECT_EQ(work.items[0].end - work.items[0].begin, longest) << "the longest begins first";
}

TEST(PlanAttentionTest, GivesEveryThreadBlockAnEqualShareOfTheWork) {
  std::vector<std::uint32_t> one_long(64, 512);
  one_long[40] = 32768;
  ExpectEvenItems(one_long, {32, 8, 128});
  std::mt19937 random(29);
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::uint32_t> lengths(1 + random() % 256);
    for (std::uint32_t& length : lengths) {
      length = 1 + random() % (random() % 8 == 0 ? 65536 : 1024);
    }
    const std::uint32_t kv_heads = 1u << random() % 5;
    ExpectEvenItems(lengths, {4 * kv_heads, kv_heads, 128});
  }
}

TEST(PlanAttentionTest, UsesTensorCoresForBfloat16HeadsOfUsualSizes) {
  const auto kind = [](DType dtype, std::uint32_t dim, std::uint32_t block) {
    return AttentionKindOf(dtype, {8, 2, dim}, block) == AttentionKind::kTensorCores;
  };
  for (std::uint32_t dim : {16u, 64u, 80u, 96u, 128u, 256u}) EXPECT_TRUE(kind(kBf16, dim, 16));
  EXPECT_FALSE(kind(DType::kFloat32, 128, 16)) << "float32 stays exact";
  EXPECT_FALSE(kind(kBf16, 72, 16));
  EXPECT_FALSE(kind(kBf16, 128, 24));
}

}  // namespace
}  // namespace penstock::shard::cuda
