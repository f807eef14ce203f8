// The kernels against plain loops in double precision, on the emulator: edge shapes, ragged batches
// and block edges. penstock-gpu-tests runs the same cases on a device.
#include "shard/backend/cuda/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/unit/shard/backend/cuda/device_values.h"
#include "tests/unit/shard/backend/cuda/fp8_values.h"

namespace penstock::shard::cuda {
namespace {

bool Ran(const absl::Status& launched) {
  const absl::Status status = launched.ok() ? FinishKernels() : launched;
  EXPECT_TRUE(status.ok()) << status;
  return status.ok();
}

class KernelTest : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override { PENSTOCK_DEVICE_OR_SKIP(); }

  // Values of the element type, and the same as doubles.
  Values Random(std::size_t count, float scale = 1.0f) {
    return Values::Random(count, GetParam(), scale, generator_);
  }
  Values Zeros(std::size_t count) { return Values::Zeros(count, GetParam()); }
  void ExpectNear(const Values& got, const std::vector<double>& want) {
    const double relative = GetParam() == DType::kFloat32 ? 1e-5 : 2e-2;
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], relative * (1.0 + std::abs(want[i]))) << "element " << i;
    }
  }

  std::mt19937 generator_{20261121};
};

TEST_P(KernelTest, AddRmsNormUpdatesTheResidualAndNormalizes) {
  for (std::uint32_t width : {1u, 31u, 64u, 255u, 576u}) {
    const std::uint32_t rows = 3;
    Values in = Random(rows * width);
    Values add = Random(rows * width);
    Values weight = Random(width);
    Values out = Zeros(rows * width);
    std::vector<double> residual(rows * width), want(rows * width);
    for (std::uint32_t r = 0; r < rows; ++r) {
      double squares = 0;
      for (std::uint32_t i = r * width; i < (r + 1) * width; ++i) {
        residual[i] = in[i] + add[i];
        squares += residual[i] * residual[i];
      }
      const double scale = 1.0 / std::sqrt(squares / width + 1e-5);
      for (std::uint32_t i = 0; i < width; ++i) {
        want[r * width + i] = residual[r * width + i] * scale * weight[i];
      }
    }
    ASSERT_TRUE(
        Ran(AddRmsNorm({in.data(), add.data(), weight.data(), out.data(), rows, width, 1e-5f},
                       GetParam(), nullptr)));
    ExpectNear(in, residual);
    ExpectNear(out, want);
  }
}

TEST_P(KernelTest, AddLayerNormUpdatesTheResidualAndNormalizes) {
  for (std::uint32_t width : {2u, 31u, 64u, 576u}) {
    const std::uint32_t rows = 3;
    Values in = Random(rows * width);
    Values add = Random(rows * width);
    Values weight = Random(width);
    Values bias = Random(width);
    Values out = Zeros(rows * width);
    std::vector<double> residual(rows * width), want(rows * width);
    for (std::uint32_t r = 0; r < rows; ++r) {
      double sum = 0, squares = 0;
      for (std::uint32_t i = r * width; i < (r + 1) * width; ++i) {
        residual[i] = in[i] + add[i];
        sum += residual[i];
      }
      const double mean = sum / width;
      for (std::uint32_t i = r * width; i < (r + 1) * width; ++i) {
        squares += (residual[i] - mean) * (residual[i] - mean);
      }
      const double scale = 1.0 / std::sqrt(squares / width + 1e-2);
      for (std::uint32_t i = 0; i < width; ++i) {
        want[r * width + i] = (residual[r * width + i] - mean) * scale * weight[i] + bias[i];
      }
    }
    ASSERT_TRUE(Ran(AddLayerNorm(
        {in.data(), add.data(), weight.data(), out.data(), rows, width, 1e-2f, bias.data()},
        GetParam(), nullptr)));
    ExpectNear(in, residual);
    ExpectNear(out, want);
  }
}

// Norm of `width` doubles from `at` on, without a weight.
std::vector<double> Normalized(const Values& values, std::size_t at, std::size_t width, double eps,
                               bool layer_norm) {
  double mean = 0, squares = 0;
  for (std::size_t i = 0; layer_norm && i < width; ++i) mean += values[at + i] / width;
  for (std::size_t i = 0; i < width; ++i) squares += std::pow(values[at + i] - mean, 2);
  std::vector<double> out(width);
  for (std::size_t i = 0; i < width; ++i) {
    out[i] = (values[at + i] - mean) / std::sqrt(squares / static_cast<double>(width) + eps);
  }
  return out;
}

TEST_P(KernelTest, NormsInPlaceHaveScalesAndOffsets) {
  const std::uint32_t rows = 2, width = 31;
  for (const bool layer_norm : {false, true}) {
    Values in = Random(rows * width), add = Random(rows * width), weight = Random(width);
    Values sum = Zeros(rows * width);
    for (std::uint32_t i = 0; i < rows * width; ++i) {
      sum.Set(i, static_cast<float>(in[i] + add[i] * 0.25));
    }
    std::vector<double> want;
    for (std::uint32_t i = 0; i < rows * width; ++i) {
      const auto row = Normalized(sum, i / width * width, width, 1e-2, layer_norm);
      want.push_back(row[i % width] * (weight[i % width] + 1.0));
    }
    NormArgs args{in.data(), add.data(), weight.data(), in.data(), rows, width, 1e-2f};
    args.add_scale = 0.25f;
    args.weight_offset = 1.0f;
    ASSERT_TRUE(Ran(layer_norm ? AddLayerNorm(args, GetParam(), nullptr)
                               : AddRmsNorm(args, GetParam(), nullptr)));
    ExpectNear(in, want);
  }
}

TEST_P(KernelTest, NormsWithoutWeightsHaveOnes) {
  for (const bool layer_norm : {false, true}) {
    Values in = Random(64), out = Zeros(64);
    NormArgs args{in.data(), nullptr, nullptr, out.data(), 1, 64, 1e-2f};
    args.weight_offset = 1.0f;  // of no weight
    ASSERT_TRUE(Ran(layer_norm ? AddLayerNorm(args, GetParam(), nullptr)
                               : AddRmsNorm(args, GetParam(), nullptr)));
    ExpectNear(out, Normalized(in, 0, 64, 1e-2, layer_norm));
  }
}

TEST_P(KernelTest, AddsAndCopies) {
  for (const std::uint32_t width : {31u, 64u}) {
    Values in = Random(2 * width), add = Random(2 * width), out = Zeros(2 * width);
    std::vector<double> want;
    for (std::uint32_t i = 0; i < 2 * width; ++i) want.push_back(in[i] + add[i]);
    const NormArgs args{in.data(), add.data(), nullptr, out.data(), 2, width};
    ASSERT_TRUE(Ran(AddAndCopy(args, GetParam(), nullptr)));
    ExpectNear(in, want);
    ExpectNear(out, want);
  }
}

TEST_P(KernelTest, LayerNormsOfHeadsHaveWeightsByHead) {
  const HeadShape shape{3, 1, 20};
  Values qkv = Random(2 * 5 * 20), query = Random(3 * 20), bias = Random(3 * 20);
  std::vector<double> want;
  for (std::uint32_t head = 0; head < 10; ++head) {
    const bool is_query = head % 5 < 3;
    const std::vector<double> normal = Normalized(qkv, head * 20, 20, 1e-2, true);
    for (std::uint32_t i = 0; i < 20; ++i) {
      const std::uint32_t own = head % 5 * 20 + i;
      want.push_back(is_query ? normal[i] * query[own] + bias[own] : qkv[head * 20 + i]);
    }
  }
  HeadNormArgs args{qkv.data(), query.data(), nullptr, shape, 2, 1e-2f};
  args.layer_norm = args.by_head = true;
  args.query_bias = bias.data();
  ASSERT_TRUE(Ran(HeadNorm(args, GetParam(), nullptr)));
  ExpectNear(qkv, want);
}

TEST_P(KernelTest, PlainNormsOfHeadsReachValuesIfAsked) {
  const HeadShape shape{2, 1, 16};
  for (const bool values : {false, true}) {
    Values qkv = Random(4 * 16);
    std::vector<double> want;
    for (std::uint32_t head = 0; head < 4; ++head) {
      const std::vector<double> normal = Normalized(qkv, head * 16, 16, 1e-6, false);
      for (std::uint32_t i = 0; i < 16; ++i) {
        want.push_back(head < 3 || values ? normal[i] : qkv[head * 16 + i]);
      }
    }
    HeadNormArgs args{qkv.data(), nullptr, nullptr, shape, 1, 1e-6f};
    args.plain = true;
    args.values = values;
    ASSERT_TRUE(Ran(HeadNorm(args, GetParam(), nullptr)));
    ExpectNear(qkv, want);
  }
}

TEST_P(KernelTest, NormsOverAllHeadsUseTheSumsOfAllRanks) {
  const HeadShape shape{3, 1, 24};
  const std::uint32_t rows = 2, width = 5 * 24;
  Values qkv = Random(rows * width), query = Random(3 * 24), key = Random(24);
  SharedVector<float> squares(2 * rows);
  std::vector<double> want, sums(2 * rows);
  for (std::uint32_t i = 0; i < rows * width; ++i) {
    if (i % width < 4 * 24) sums[i / width * 2 + (i % width < 72 ? 0 : 1)] += qkv[i] * qkv[i];
  }
  for (std::uint32_t i = 0; i < rows * width; ++i) {
    const std::uint32_t at = i % width;
    const double scale_query = 1 / std::sqrt(2 * sums[i / width * 2] / 144 + 1e-6);
    const double scale_key = 1 / std::sqrt(2 * sums[i / width * 2 + 1] / 48 + 1e-6);
    want.push_back(at < 72   ? qkv[i] * scale_query * query[at]
                   : at < 96 ? qkv[i] * scale_key * key[at - 72]
                             : qkv[i]);
  }
  ASSERT_TRUE(Ran(SumSquares({qkv.data(), squares.data(), shape, rows}, GetParam(), nullptr)));
  for (std::uint32_t i = 0; i < 2 * rows; ++i) EXPECT_NEAR(squares[i], sums[i], 1e-4 * sums[i]);
  for (float& square : squares) square *= 2;  // another rank has as much
  ASSERT_TRUE(Ran(
      WidthNorm({qkv.data(), squares.data(), query.data(), key.data(), shape, rows, 144, 48, 1e-6f},
                GetParam(), nullptr)));
  ExpectNear(qkv, want);
}

TEST_P(KernelTest, HeadNormTouchesQueriesAndKeysOnly) {
  const HeadShape shape{4, 2, 80};
  const std::uint32_t rows = 2, width = (4 + 2 * 2) * 80;
  Values qkv = Random(rows * width);
  Values query = Random(80), key = Random(80);
  std::vector<double> want(rows * width);
  for (std::uint32_t head = 0; head < rows * 8; ++head) {
    double squares = 0;
    for (std::uint32_t i = 0; i < 80; ++i) squares += qkv[head * 80 + i] * qkv[head * 80 + i];
    const double scale = 1.0 / std::sqrt(squares / 80 + 1e-6);
    for (std::uint32_t i = 0; i < 80; ++i) {
      const double value = qkv[head * 80 + i];
      want[head * 80 + i] = head % 8 >= 6   ? value
                            : head % 8 >= 4 ? value * scale * key[i]
                                            : value * scale * query[i];
    }
  }
  ASSERT_TRUE(Ran(
      HeadNorm({qkv.data(), query.data(), key.data(), shape, rows, 1e-6f}, GetParam(), nullptr)));
  ExpectNear(qkv, want);
}

TEST_P(KernelTest, RopeRotatesAndWritesTheRowsOfTheCache) {
  const std::pair<std::uint32_t, std::uint32_t> sizes[] = {{2, 2},   {64, 64}, {96, 96}, {256, 256},
                                                           {64, 16}, {80, 20}, {10, 4}};
  for (const auto& [dim, rotary] : sizes) {
    SCOPED_TRACE(std::to_string(rotary) + " of " + std::to_string(dim) + " dimensions");
    const HeadShape shape{3, 1, dim};
    const std::uint32_t rows = 2, width = 5 * dim, half = rotary / 2;
    Values qkv = Random(rows * width);
    Values keys = Zeros(8 * dim), values = Zeros(8 * dim);
    const SharedVector<std::int32_t> positions = {0, 5};
    const SharedVector<std::int64_t> cache_rows = {7, 2};
    SharedVector<float> cos(6 * half), sin(6 * half);
    for (std::size_t i = 0; i < cos.size(); ++i) {
      cos[i] = std::cos(0.1f * static_cast<float>(i));
      sin[i] = std::sin(0.1f * static_cast<float>(i));
    }
    std::vector<double> want(rows * width);
    for (std::uint32_t i = 0; i < rows * width; ++i) {
      const std::uint32_t row = i / width, head = i % width / dim, d = i % dim, j = d % half;
      const double c = cos[static_cast<std::uint32_t>(positions[row]) * half + j];
      const double s = sin[static_cast<std::uint32_t>(positions[row]) * half + j];
      want[i] = qkv[i];
      if (head == 4 || d >= rotary) continue;
      want[i] = qkv[i] * c + (d < half ? -qkv[i + half] : qkv[i - half]) * s;
    }
    ASSERT_TRUE(
        Ran(RopeKvWrite({qkv.data(), cos.data(), sin.data(), positions.data(), cache_rows.data(),
                         keys.data(), values.data(), shape, rows, rotary},
                        GetParam(), nullptr)));
    ExpectNear(qkv, want);
    for (std::uint32_t d = 0; d < dim; ++d) {
      EXPECT_EQ(keys[7 * dim + d], qkv[3 * dim + d]);
      EXPECT_EQ(values[2 * dim + d], qkv[width + 4 * dim + d]);
      EXPECT_EQ(keys[0 * dim + d], 0.0) << "a row that no segment names was written";
    }
  }
}

TEST_P(KernelTest, RopeWritesTheNearestFp8) {
  const HeadShape shape{2, 2, 96};
  const std::uint32_t dim = 96, width = 6 * dim;
  Values qkv = Random(width, 3.0f);
  qkv.Set(4 * dim + 1, 700.0f);  // beyond the largest
  qkv.Set(4 * dim + 2, -0.001f);
  const SharedVector<std::int32_t> positions = {1};
  const SharedVector<std::int64_t> cache_rows = {0};
  const SharedVector<float> cos(64, 0.8f), sin(64, 0.6f);
  SharedVector<std::uint8_t> keys(2 * dim), values(2 * dim);
  RopeArgs args{qkv.data(),
                cos.data(),
                sin.data(),
                positions.data(),
                cache_rows.data(),
                keys.data(),
                values.data(),
                shape,
                1,
                64};
  args.fp8_cache = true;
  ASSERT_TRUE(Ran(RopeKvWrite(args, GetParam(), nullptr)));
  for (std::uint32_t i = 0; i < 4 * dim; ++i) {
    const double want = qkv[2 * dim + i];
    double nearest = 1e9;
    for (int code = 0; code < 256; ++code) {
      if ((code & 0x7f) == 0x7f) continue;
      nearest = std::min(nearest, std::abs(Fp8Value(static_cast<std::uint8_t>(code)) - want));
    }
    const float got = Fp8Value(i < 2 * dim ? keys[i] : values[i - 2 * dim]);
    EXPECT_EQ(std::abs(got - want), nearest) << "element " << i << ": " << want;
  }
}

TEST_P(KernelTest, RopeWithoutACacheTurnsByRowAndLetsQueriesGrow) {
  const HeadShape shape{2, 1, 8};
  Values qkv = Random(2 * 4 * 8);
  const SharedVector<std::int32_t> positions = {3, 9};
  SharedVector<float> cos(2 * 2), sin(2 * 2);
  for (std::size_t i = 0; i < cos.size(); ++i) {
    cos[i] = std::cos(0.3f * static_cast<float>(i + 1));
    sin[i] = std::sin(0.3f * static_cast<float>(i + 1));
  }
  std::vector<double> want;
  for (std::uint32_t i = 0; i < 64; ++i) {
    const std::uint32_t row = i / 32, head = i / 8 % 4, d = i % 8;
    double value = qkv[i];
    if (head < 3 && d < 4) {
      const double c = cos[row * 2 + d % 2], s = sin[row * 2 + d % 2];
      value = value * c + (d < 2 ? -qkv[i + 2] : qkv[i - 2]) * s;
    }
    const double growth = 1 + 0.5 * std::log(1 + std::floor((positions[row] + 1) / 4));
    want.push_back(head < 2 ? value * growth : value);
  }
  RopeArgs args{qkv.data(), cos.data(), sin.data(), positions.data()};
  args.shape = shape;
  args.rows = 2;
  args.rotary = 4;
  args.by_row = true;
  args.growth_rate = 0.5f;
  args.growth_period = 4;
  args.growth_first = 1;
  ASSERT_TRUE(Ran(RopeKvWrite(args, GetParam(), nullptr)));
  ExpectNear(qkv, want);
}

TEST_P(KernelTest, EmbeddingGivesZerosForTokensOfOtherRanks) {
  for (std::uint32_t width : {70u, 2064u}) {
    const Values table = Random(4 * width);
    const SharedVector<std::int32_t> tokens = {10, 13, 9, 14};
    Values out = Random(4 * width);
    ASSERT_TRUE(Ran(
        Embed({tokens.data(), table.data(), out.data(), 4, width, 10, 4}, GetParam(), nullptr)));
    for (std::uint32_t i = 0; i < width; ++i) {
      EXPECT_EQ(out[i], table[i]);
      EXPECT_EQ(out[width + i], table[3 * width + i]);
      EXPECT_EQ(out[2 * width + i], 0.0);
      EXPECT_EQ(out[3 * width + i], 0.0);
    }
  }
}

TEST_P(KernelTest, SelectsRowsAndChangesWidths) {
  for (std::uint32_t width : {300u, 2064u}) {
    const Values in = Random(5 * width);
    Values out = Zeros(2 * width), back = Zeros(2 * width);
    const SharedVector<std::int32_t> chosen = {4, 1};
    ASSERT_TRUE(
        Ran(SelectRows({in.data(), chosen.data(), out.data(), 2, width}, GetParam(), nullptr)));
    SharedVector<float> wide(2 * width);
    ASSERT_TRUE(Ran(Widen(out.data(), wide.data(), wide.size(), GetParam(), nullptr)));
    ASSERT_TRUE(Ran(Narrow(wide.data(), back.data(), wide.size(), GetParam(), nullptr)));
    for (std::uint32_t i = 0; i < width; ++i) {
      EXPECT_EQ(wide[i], in[4 * width + i]);
      EXPECT_EQ(back[width + i], in[width + i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Elements, KernelTest, testing::Values(DType::kFloat32, DType::kBFloat16),
                         [](const auto& param) { return std::string(DTypeName(param.param)); });

TEST(KernelDTypeTest, RefusesElementsItHasNoKernelFor) {
  float value = 0;
  EXPECT_TRUE(absl::IsUnimplemented(Widen(&value, &value, 1, DType::kFloat16, nullptr)));
}

}  // namespace
}  // namespace penstock::shard::cuda
