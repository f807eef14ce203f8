// Weights of one byte: what quantizing keeps, and products of few rows with them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "shard/backend/cuda/kernels.h"
#include "tests/unit/shard/backend/cuda/device_values.h"
#include "tests/unit/shard/backend/cuda/fp8_values.h"

namespace penstock::shard::cuda {

inline void PrintTo(WeightForm form, std::ostream* out) {
  *out << (form == WeightForm::kFp8 ? "fp8" : "int8");
}

namespace {

bool Ran(const absl::Status& launched) {
  const absl::Status status = launched.ok() ? FinishKernels() : launched;
  EXPECT_TRUE(status.ok()) << status;
  return status.ok();
}

float ValueOf(WeightForm form, std::uint8_t code) {
  return form == WeightForm::kFp8 ? Fp8Value(code) : static_cast<float>(static_cast<int8_t>(code));
}

// A matrix on the device in one of the forms.
struct Stored {
  SharedVector<std::uint8_t> bytes;
  SharedVector<float> scales;
  std::uint32_t width = 0;
  WeightForm form = WeightForm::kFp8;

  double At(std::size_t row, std::size_t column) const {
    return double{ValueOf(form, bytes[row * width + column])} * scales[row];
  }
};

class QuantizedTest : public testing::TestWithParam<WeightForm> {
 protected:
  void SetUp() override { PENSTOCK_DEVICE_OR_SKIP(); }

  Values Random(std::size_t count, float scale = 1.0f) {
    return Values::Random(count, DType::kBFloat16, scale, generator_);
  }
  Values Zeros(std::size_t count) { return Values::Zeros(count, DType::kBFloat16); }

  static Stored Quantized(Values& plain, std::uint32_t rows, std::uint32_t width) {
    Stored stored{SharedVector<std::uint8_t>(std::size_t{rows} * width), SharedVector<float>(rows),
                  width, GetParam()};
    EXPECT_TRUE(Ran(QuantizeRows(
        {plain.data(), stored.bytes.data(), stored.scales.data(), rows, width, GetParam()},
        nullptr)));
    return stored;
  }
  static LinearArgs Args(const Values& in, const Stored& weight, Values& out, std::uint32_t rows) {
    LinearArgs args{in.data(), weight.bytes.data(), nullptr, out.data(), rows, weight.width};
    args.out_width = static_cast<std::uint32_t>(weight.scales.size());
    args.form = weight.form;
    args.scales = weight.scales.data();
    return args;
  }

  std::mt19937 generator_{20261127};
};

// All 256 codes: the value of each, and no other of the codes lies nearer to it.
TEST_P(QuantizedTest, ExpandsEveryCodeExactly) {
  constexpr std::uint32_t kWidth = 256;
  SharedVector<std::uint8_t> codes(kWidth);
  for (std::uint32_t i = 0; i < kWidth; ++i) codes[i] = static_cast<std::uint8_t>(i);
  SharedVector<float> scale(1);
  scale[0] = 0.5f;
  Values plain = Zeros(kWidth);
  ASSERT_TRUE(
      Ran(ExpandRows({plain.data(), codes.data(), scale.data(), 1, kWidth, GetParam()}, nullptr)));
  for (std::uint32_t i = 0; i < kWidth; ++i) {
    if (GetParam() == WeightForm::kFp8 && (i & 0x7f) == 0x7f) continue;  // NaN is never stored
    EXPECT_EQ(plain[i], ValueOf(GetParam(), codes[i]) * 0.5f) << "code " << i;
  }
}

TEST_P(QuantizedTest, KeepsTheNearestStoredValue) {
  constexpr std::uint32_t kRows = 5;
  constexpr std::uint32_t kWidth = 320;
  Values plain = Random(kRows * kWidth, 0.2f);
  for (std::uint32_t i = 0; i < kWidth; ++i) {
    plain.Set(1 * kWidth + i, 0.0f);
    plain.Set(2 * kWidth + i, i == 7 ? -30.0f : 0.001f * static_cast<float>(i));  // an outlier
  }
  const Stored stored = Quantized(plain, kRows, kWidth);
  for (std::uint32_t row = 0; row < kRows; ++row) {
    double largest = 0;
    for (std::uint32_t i = 0; i < kWidth; ++i) {
      largest = std::max(largest, std::abs(plain[row * kWidth + i]));
    }
    const float scale = stored.scales[row];
    if (GetParam() == WeightForm::kFp8) {
      int exponent = 0;
      EXPECT_EQ(std::frexp(scale, &exponent), 0.5f) << "not a power of two";
      EXPECT_GE(448.0 * scale, largest);
      EXPECT_TRUE(largest == 0 || 224.0 * scale < largest) << "a bit of the range is not used";
    } else {
      EXPECT_EQ(scale, static_cast<float>(largest) / 127.0f);
    }
    for (std::uint32_t i = 0; i < kWidth; ++i) {
      const double want = plain[row * kWidth + i];
      double nearest = INFINITY;
      for (int code = 0; code < 256; ++code) {
        const bool no_value = GetParam() == WeightForm::kFp8 ? (code & 0x7f) == 0x7f : code == 128;
        if (no_value) continue;
        const double value = double{ValueOf(GetParam(), static_cast<std::uint8_t>(code))} * scale;
        nearest = std::min(nearest, std::abs(want - value));
      }
      ASSERT_NEAR(std::abs(want - stored.At(row, i)), nearest, 1e-6 * largest)
          << "row " << row << ", column " << i;
    }
  }
}

// What is stored is expanded to bits that are stored as the same bytes.
TEST_P(QuantizedTest, AnExpandedMatrixIsQuantizedToTheSameBytes) {
  constexpr std::uint32_t kRows = 3;
  constexpr std::uint32_t kWidth = 128;
  Values plain = Random(kRows * kWidth, 3.0f);
  const Stored first = Quantized(plain, kRows, kWidth);
  Values expanded = Zeros(kRows * kWidth);
  ASSERT_TRUE(Ran(ExpandRows({expanded.data(), const_cast<std::uint8_t*>(first.bytes.data()),
                              const_cast<float*>(first.scales.data()), kRows, kWidth, GetParam()},
                             nullptr)));
  for (std::uint32_t i = 0; i < kRows * kWidth; ++i) {
    const double want = first.At(i / kWidth, i % kWidth);
    // Scales of fp8 are powers of two: no rounding at all.
    const double most = GetParam() == WeightForm::kFp8 ? 0.0 : std::abs(want) / 256;
    ASSERT_NEAR(expanded[i], want, most) << "element " << i;
  }
}

TEST_P(QuantizedTest, MultipliesAFewRows) {
  struct Size {
    std::uint32_t rows, in_width, out_width;
    bool bias, accumulate;
  };
  for (const Size& size : {Size{1, 64, 16, false, false}, Size{1, 1088, 40, true, false},
                           Size{3, 576, 17, false, true}, Size{8, 2112, 48, true, true},
                           Size{9, 512, 33, false, false}, Size{16, 192, 16, true, false},
                           Size{17, 320, 20, false, true}, Size{32, 320, 64, true, true},
                           Size{33, 640, 24, true, false}, Size{64, 128, 18, false, true}}) {
    Values in = Random(size.rows * size.in_width);
    Values plain = Random(size.out_width * size.in_width, 0.1f);
    const Stored weight = Quantized(plain, size.out_width, size.in_width);
    Values bias = Random(size.out_width);
    Values out = Random(size.rows * size.out_width);
    std::vector<double> want(size.rows * size.out_width);
    for (std::uint32_t r = 0; r < size.rows; ++r) {
      for (std::uint32_t n = 0; n < size.out_width; ++n) {
        double sum = size.bias ? bias[n] : 0.0;
        if (size.accumulate) sum += out[r * size.out_width + n];
        for (std::uint32_t i = 0; i < size.in_width; ++i) {
          sum += in[r * size.in_width + i] * weight.At(n, i);
        }
        want[r * size.out_width + n] = sum;
      }
    }
    LinearArgs args = Args(in, weight, out, size.rows);
    if (size.bias) args.bias = bias.data();
    args.accumulate = size.accumulate;
    ASSERT_TRUE(IsSkinny(args, DType::kBFloat16));
    ASSERT_TRUE(Ran(SkinnyLinear({args}, nullptr)));
    for (std::size_t i = 0; i < want.size(); ++i) {
      // One rounding to bfloat16.
      ASSERT_NEAR(out[i], want[i], 5e-3 * (0.1 + std::abs(want[i])))
          << size.rows << " rows of " << size.in_width << ", element " << i;
    }
  }
}

TEST_P(QuantizedTest, GivesARowTheSameBitsInAnyBatch) {
  constexpr std::uint32_t kRows = MostSkinnyRows(WeightForm::kFp8);
  constexpr std::uint32_t kIn = 1088;
  constexpr std::uint32_t kOut = 24;
  Values in = Random(kRows * kIn);
  Values plain = Random(kOut * kIn, 0.1f);
  const Stored weight = Quantized(plain, kOut, kIn);
  Values all = Zeros(kRows * kOut);
  ASSERT_TRUE(Ran(SkinnyLinear({Args(in, weight, all, kRows)}, nullptr)));
  for (std::uint32_t rows : {1u, 2u, 8u, 9u, 16u, 31u, 32u, 40u}) {
    Values some = Zeros(rows * kOut);
    ASSERT_TRUE(Ran(SkinnyLinear({Args(in, weight, some, rows)}, nullptr)));
    for (std::uint32_t i = 0; i < rows * kOut; ++i) {
      ASSERT_EQ(some[i], all[i]) << "row " << i / kOut << " of " << rows;
    }
  }
}

TEST_P(QuantizedTest, AGateAfterItHasTheBitsOfItsOwnKernel) {
  struct Size {
    std::uint32_t rows, in_width, width;
    bool bias;
  };
  for (const Size& size : {Size{1, 64, 40, false}, Size{5, 320, 17, true}, Size{20, 128, 24, true},
                           Size{50, 192, 16, false}}) {
    Values in = Random(size.rows * size.in_width);
    Values plain = Random(2 * size.width * size.in_width, 0.3f);
    const Stored weight = Quantized(plain, 2 * size.width, size.in_width);
    Values bias = Random(2 * size.width);
    Values both = Zeros(size.rows * 2 * size.width);
    Values want = Zeros(size.rows * size.width);
    Values got = Zeros(size.rows * size.width);
    SkinnyArgs args{Args(in, weight, both, size.rows)};
    if (size.bias) args.linear.bias = bias.data();
    ASSERT_TRUE(Ran(SkinnyLinear(args, nullptr)));
    ASSERT_TRUE(Ran(ActivateGate({both.data(), want.data(), size.rows, size.width},
                                 DType::kBFloat16, nullptr)));
    args.gated = true;
    args.linear.out = got.data();
    ASSERT_TRUE(Ran(SkinnyLinear(args, nullptr)));
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_EQ(got[i], want[i]) << "element " << i;
  }
}

TEST_P(QuantizedTest, RefusesWhatItHasNoKernelFor) {
  LinearArgs args{.rows = 64, .in_width = 128, .out_width = 1};
  args.form = GetParam();
  EXPECT_TRUE(IsSkinny(args, DType::kBFloat16));
  EXPECT_FALSE(IsSkinny(args, DType::kFloat32));
  args.rows = 65;
  EXPECT_FALSE(IsSkinny(args, DType::kBFloat16));
  args.rows = 1;
  args.in_width = 96;
  EXPECT_FALSE(IsSkinny(args, DType::kBFloat16));
}

INSTANTIATE_TEST_SUITE_P(Forms, QuantizedTest, testing::Values(WeightForm::kFp8, WeightForm::kInt8),
                         [](const auto& param) { return testing::PrintToString(param.param); });

}  // namespace
}  // namespace penstock::shard::cuda
