// AWQ and GPTQ, expanded here bit by bit from what their packers are known to write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "common/status.h"
#include "shard/weights/convert.h"
#include "shard/weights/loader.h"
#include "tests/unit/shard/weights/stored_tensors.h"

namespace penstock::shard {
namespace {

using Random = std::mt19937;
using Matrix = std::vector<std::vector<std::uint32_t>>;

Matrix Integers(Random& random, std::uint64_t rows, std::uint64_t columns, std::uint32_t bits) {
  Matrix values(rows, std::vector<std::uint32_t>(columns));
  for (auto& row : values) {
    for (std::uint32_t& value : row) value = random() & ((1u << bits) - 1);
  }
  return values;
}

std::string Shape(std::uint64_t rows, std::uint64_t columns) {
  return "[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
}

// One bit after the other.
std::vector<std::uint32_t> Packed(const std::vector<std::uint32_t>& values, std::uint32_t bits) {
  std::vector<std::uint32_t> words((values.size() * bits + 31) / 32);
  for (std::size_t i = 0; i < values.size() * bits; ++i) {
    words[i / 32] |= (values[i / bits] >> (i % bits) & 1u) << (i % 32);
  }
  return words;
}

Stored Lines(const std::string& name, const Matrix& lines) {
  std::vector<std::uint32_t> all;
  for (const auto& line : lines) all.insert(all.end(), line.begin(), line.end());
  return {name, "I32", Shape(lines.size(), lines.front().size()), Words(all)};
}

Matrix Turned(const Matrix& lines) {
  Matrix turned(lines.front().size(), std::vector<std::uint32_t>(lines.size()));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::size_t j = 0; j < lines[i].size(); ++j) turned[j][i] = lines[i][j];
  }
  return turned;
}

struct Case {
  std::uint32_t bits;
  std::uint64_t rows, columns, group;
  bool ordered;  // the columns are in groups in any order
  bool v2;
};

// A random matrix as stored, and its values.
struct Example {
  std::vector<Stored> tensors;
  std::string quantization;
  std::uint64_t rows = 0, columns = 0;
  std::vector<float> values;
};

// Scales that F16 holds.
std::vector<float> Scales(Random& random, std::uint64_t count) {
  std::vector<float> scales(count);
  for (float& scale : scales) scale = static_cast<float>(1 + random() % 2000) / 16384.0f;
  return scales;
}

Example Gptq(const Case& test, Random& random) {
  const std::uint64_t size = test.group == 0 ? test.columns : test.group;
  const std::uint64_t groups = (test.columns + size - 1) / size;
  std::vector<std::uint32_t> index(test.columns);
  for (std::uint64_t k = 0; k < test.columns; ++k) index[k] = static_cast<std::uint32_t>(k / size);
  if (test.ordered) std::shuffle(index.begin(), index.end(), random);
  const Matrix values = Integers(random, test.rows, test.columns, test.bits);
  const Matrix zeros = Integers(random, groups, test.rows, test.bits);
  const std::vector<float> scales = Scales(random, groups * test.rows);
  Matrix columns, lines;
  for (const auto& row : values) columns.push_back(Packed(row, test.bits));
  for (auto line : zeros) {
    for (std::uint32_t& zero : line) {
      if (!test.v2) zero = (zero - 1) & ((1u << test.bits) - 1);
    }
    lines.push_back(Packed(line, test.bits));
  }
  Example example{.rows = test.rows, .columns = test.columns};
  example.tensors = {Lines("m.qweight", Turned(columns)),
                     Lines("m.qzeros", lines),
                     {"m.scales", "F16", Shape(groups, test.rows), Halves(scales)},
                     {"m.g_idx", "I32", "[" + std::to_string(test.columns) + "]", Words(index)}};
  example.quantization = R"({"quant_method": "gptq", "bits": )" + std::to_string(test.bits) +
                         R"(, "group_size": )" +
                         (test.group == 0 ? "-1" : std::to_string(test.group)) +
                         (test.ordered ? R"(, "desc_act": true)" : "") +
                         (test.v2 ? R"(, "checkpoint_format": "gptq_v2"})" : "}");
  for (std::uint64_t n = 0; n < test.rows; ++n) {
    for (std::uint64_t k = 0; k < test.columns; ++k) {
      const float less = static_cast<float>(values[n][k]) - static_cast<float>(zeros[index[k]][n]);
      example.values.push_back(less * scales[index[k] * test.rows + n]);
    }
  }
  return example;
}

Example Awq(std::uint64_t rows, std::uint64_t columns, std::uint64_t group, Random& random) {
  constexpr std::size_t kOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};
  const std::uint64_t groups = (columns + group - 1) / group;
  const Matrix values = Integers(random, columns, rows, 4),
               zeros = Integers(random, groups, rows, 4);
  const std::vector<float> scales = Scales(random, groups * rows);
  const auto packed = [&kOrder](const Matrix& lines) {
    Matrix all;
    for (const auto& line : lines) {
      std::vector<std::uint32_t> words(line.size() / 8);
      for (std::size_t i = 0; i < line.size(); ++i) {
        words[i / 8] |= line[i / 8 * 8 + kOrder[i % 8]] << (i % 8 * 4);
      }
      all.push_back(words);
    }
    return all;
  };
  Example example{.rows = rows, .columns = columns};
  example.tensors = {Lines("m.qweight", packed(values)),
                     Lines("m.qzeros", packed(zeros)),
                     {"m.scales", "F16", Shape(groups, rows), Halves(scales)}};
  example.quantization =
      R"({"quant_method": "awq", "bits": 4, "group_size": )" + std::to_string(group) + "}";
  for (std::uint64_t n = 0; n < rows; ++n) {
    for (std::uint64_t k = 0; k < columns; ++k) {
      const float less = static_cast<float>(values[k][n]) - static_cast<float>(zeros[k / group][n]);
      example.values.push_back(less * scales[k / group * rows + n]);
    }
  }
  return example;
}

// Whole and in pieces.
void Compare(const Example& example) {
  const TempFolder folder;
  const Checkpoint checkpoint = OpenStored(folder, example.tensors);
  const Range all_rows{0, example.rows}, all_columns{0, example.columns};
  for (const auto& [rows, columns] :
       {std::pair{all_rows, all_columns}, std::pair{Range{3, example.rows - 4}, all_columns},
        std::pair{all_rows, Range{5, example.columns - 6}},
        std::pair{Range{example.rows - 1, 1}, Range{1, 1}}}) {
    const WeightPlan plan = PlanOf({"m.weight", {example.rows, example.columns}, rows, columns, 0},
                                   example.quantization);
    ASSERT_EQ(Message(CheckParts(checkpoint, plan)), "");
    ASSERT_EQ(Message(CheckAllConsumed(checkpoint, plan)), "");
    auto weights = LoadWeights(checkpoint, plan, DType::kFloat32, nullptr);
    ASSERT_TRUE(weights.ok()) << weights.status();
    const auto* got = static_cast<const float*>(weights->views.front().data);
    for (std::uint64_t n = 0; n < rows.count; ++n) {
      for (std::uint64_t k = 0; k < columns.count; ++k) {
        const std::uint64_t at = (rows.first + n) * example.columns + columns.first + k;
        ASSERT_EQ(got[n * columns.count + k], example.values[at]) << n << " " << k;
      }
    }
  }
}

TEST(PackedFormats, GptqHasTheValuesOfItsBits) {
  Random random(7);
  for (const std::uint32_t bits : {2u, 3u, 4u, 8u}) {
    for (const bool ordered : {false, true}) {
      for (const bool v2 : {false, true}) {
        for (const auto& [rows, columns, group] :
             {std::tuple{32u, 64u, 32u}, std::tuple{40u, 96u, 24u}, std::tuple{7u, 50u, 0u}}) {
          const Case test{bits, rows, columns, group, ordered, v2};
          SCOPED_TRACE(testing::Message()
                       << bits << " bits, " << rows << " x " << columns << ", groups of " << group
                       << (ordered ? ", ordered" : "") << (v2 ? ", v2" : ""));
          Compare(Gptq(test, random));
        }
      }
    }
  }
}

TEST(PackedFormats, AwqHasTheValuesOfItsBits) {
  Random random(8);
  for (const auto& [rows, columns, group] :
       {std::tuple{32u, 64u, 32u}, std::tuple{8u, 50u, 16u}, std::tuple{72u, 33u, 33u}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", groups of " << group);
    Compare(Awq(rows, columns, group, random));
  }
}

// With these columns.
bool GivesInt4(const Example& example, Range columns) {
  const TempFolder folder;
  const Checkpoint checkpoint = OpenStored(folder, example.tensors);
  return GivesInt4(
      checkpoint,
      PlanOf({"m.weight", {example.rows, example.columns}, {1, example.rows - 2}, columns, 0},
             example.quantization));
}

TEST(PackedFormats, GroupsThat32ColumnsDivideAreGivenAsIntegers) {
  Random random(9);
  const auto gptq = [&random](const Case& test) { return Gptq(test, random); };
  for (const bool v2 : {false, true}) {
    EXPECT_TRUE(GivesInt4(gptq({4, 32, 64, 32, false, v2}), {32, 32}));
    EXPECT_TRUE(GivesInt4(gptq({4, 40, 160, 128, false, v2}), {0, 160}));
    EXPECT_TRUE(GivesInt4(gptq({4, 40, 160, 128, false, v2}), {96, 50}));
    EXPECT_TRUE(GivesInt4(gptq({4, 7, 50, 0, false, v2}), {0, 50}));
  }
  EXPECT_TRUE(GivesInt4(Awq(32, 64, 32, random), {0, 64}));
  EXPECT_TRUE(GivesInt4(Awq(72, 200, 64, random), {32, 140}));
  EXPECT_FALSE(GivesInt4(gptq({4, 40, 96, 24, false, false}), {0, 96}));
  EXPECT_FALSE(GivesInt4(gptq({4, 32, 64, 32, true, false}), {0, 64})) << "in any order";
  EXPECT_FALSE(GivesInt4(gptq({3, 32, 64, 32, false, false}), {0, 64}));
  EXPECT_FALSE(GivesInt4(gptq({8, 32, 64, 32, false, false}), {0, 64}));
  EXPECT_FALSE(GivesInt4(gptq({4, 32, 64, 32, false, false}), {5, 32}));
}

// compressed-tensors wrote weight_g_idx until it read only columns in order.
TEST(PackedFormats, PackedIntegersMayHaveGroupsInAnyOrder) {
  const std::vector<std::uint32_t> values = {9, 7, 8, 0, 15, 8, 1, 8};
  const std::vector<std::uint32_t> index = {1, 0, 0, 1, 0, 1, 1, 0};
  const TempFolder folder;
  const Checkpoint checkpoint =
      OpenStored(folder, {{"m.weight_packed", "I32", "[1,1]", Words(Packed(values, 4))},
                          {"m.weight_scale", "F32", "[1,2]", Floats({2, 16})},
                          {"m.weight_g_idx", "I32", "[8]", Words(index)}});
  const WeightPlan plan = PlanOf({"m.weight", {1, 8}, {0, 1}, {0, 8}, 0}, R"({
      "quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"a": {
        "targets": ["Linear"], "weights": {"num_bits": 4, "strategy": "group", "group_size": 4,
                                           "actorder": "group"}}}})");
  ASSERT_EQ(Message(CheckParts(checkpoint, plan)), "");
  auto weights = LoadWeights(checkpoint, plan, DType::kFloat32, nullptr);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const auto* got = static_cast<const float*>(weights->views.front().data);
  EXPECT_THAT(std::vector<float>(got, got + 8),
              testing::ElementsAre(16, -2, 0, -128, 14, 0, -112, 0));
}

}  // namespace
}  // namespace penstock::shard
