// Products of few rows against plain loops, and what is fused with them against separate kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "shard/backend/cuda/kernels.h"
#include "tests/unit/shard/backend/cuda/device_values.h"

namespace penstock::shard::cuda {
namespace {

bool Ran(const absl::Status& launched) {
  const absl::Status status = launched.ok() ? FinishKernels() : launched;
  EXPECT_TRUE(status.ok()) << status;
  return status.ok();
}

class SkinnyLinearTest : public testing::Test {
 protected:
  void SetUp() override { PENSTOCK_DEVICE_OR_SKIP(); }

  Values Random(std::size_t count, float scale = 1.0f) {
    return Values::Random(count, DType::kBFloat16, scale, generator_);
  }
  Values Zeros(std::size_t count) { return Values::Zeros(count, DType::kBFloat16); }
  void ExpectNear(const Values& got, const std::vector<double>& want) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 2e-2 * (1.0 + std::abs(want[i]))) << "element " << i;
    }
  }

  std::mt19937 generator_{20261127};
};

TEST_F(SkinnyLinearTest, MultipliesAFewRows) {
  struct Size {
    std::uint32_t rows, in_width, out_width;
    bool bias, accumulate;
  };
  for (const Size& size : {Size{1, 32, 16, false, false}, Size{1, 1024, 40, true, false},
                           Size{3, 352, 17, false, true}, Size{8, 1056, 48, true, true},
                           Size{9, 512, 33, false, false}, Size{16, 96, 16, true, false},
                           Size{17, 288, 20, false, true}, Size{32, 320, 64, true, true}}) {
    Values in = Random(size.rows * size.in_width);
    Values weight = Random(size.out_width * size.in_width, 0.1f);
    Values bias = Random(size.out_width);
    Values out = Random(size.rows * size.out_width);
    std::vector<double> want(size.rows * size.out_width);
    for (std::uint32_t r = 0; r < size.rows; ++r) {
      for (std::uint32_t n = 0; n < size.out_width; ++n) {
        double sum = size.bias ? bias[n] : 0.0;
        if (size.accumulate) sum += out[r * size.out_width + n];
        for (std::uint32_t i = 0; i < size.in_width; ++i) {
          sum += double{in[r * size.in_width + i]} * weight[n * size.in_width + i];
        }
        want[r * size.out_width + n] = sum;
      }
    }
    const LinearArgs args{in.data(),      weight.data(),  size.bias ? bias.data() : nullptr,
                          out.data(),     size.rows,      size.in_width,
                          size.out_width, size.accumulate};
    ASSERT_TRUE(IsSkinny(args, DType::kBFloat16));
    ASSERT_TRUE(Ran(SkinnyLinear({args}, nullptr)));
    ExpectNear(out, want);
  }
}

TEST_F(SkinnyLinearTest, GivesARowTheSameBitsInAnyBatch) {
  constexpr std::uint32_t kRows = MostSkinnyRows(WeightForm::kPlain);
  constexpr std::uint32_t kIn = 1056;
  constexpr std::uint32_t kOut = 24;
  Values in = Random(kRows * kIn);
  Values weight = Random(kOut * kIn, 0.1f);
  Values all = Zeros(kRows * kOut);
  ASSERT_TRUE(Ran(
      SkinnyLinear({{in.data(), weight.data(), nullptr, all.data(), kRows, kIn, kOut}}, nullptr)));
  for (std::uint32_t rows : {1u, 2u, 8u, 9u, 16u, 31u}) {
    Values some = Zeros(rows * kOut);
    ASSERT_TRUE(Ran(SkinnyLinear(
        {{in.data(), weight.data(), nullptr, some.data(), rows, kIn, kOut}}, nullptr)));
    for (std::uint32_t i = 0; i < rows * kOut; ++i) {
      ASSERT_EQ(some[i], all[i]) << "row " << i / kOut << " of " << rows;
    }
  }
}

TEST_F(SkinnyLinearTest, RefusesWhatItHasNoKernelFor) {
  EXPECT_TRUE(IsSkinny({.rows = 32, .in_width = 64, .out_width = 1}, DType::kBFloat16));
  EXPECT_FALSE(IsSkinny({.rows = 33, .in_width = 64, .out_width = 1}, DType::kBFloat16));
  EXPECT_FALSE(IsSkinny({.rows = 1, .in_width = 48, .out_width = 1}, DType::kBFloat16));
  EXPECT_FALSE(IsSkinny({.rows = 1, .in_width = 64, .out_width = 1}, DType::kFloat32));
}

void ExpectSame(const Values& a, const Values& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], b[i]) << "element " << i;
}

TEST_F(SkinnyLinearTest, AGateAfterItHasTheBitsOfItsOwnKernel) {
  struct Size {
    std::uint32_t rows, in_width, width;
    bool bias;
  };
  for (const Size& size : {Size{1, 64, 40, false}, Size{5, 352, 17, true}, Size{8, 512, 56, false},
                           Size{20, 96, 24, true}}) {
    Values in = Random(size.rows * size.in_width);
    Values weight = Random(2 * size.width * size.in_width, 0.3f);
    Values bias = Random(2 * size.width);
    Values both = Zeros(size.rows * 2 * size.width);
    Values want = Zeros(size.rows * size.width);
    Values got = Zeros(size.rows * size.width);
    SkinnyArgs args;
    args.linear = {in.data(),     weight.data(), size.bias ? bias.data() : nullptr,
                   both.data(),   size.rows,     size.in_width,
                   2 * size.width};
    ASSERT_TRUE(Ran(SkinnyLinear(args, nullptr)));
    ASSERT_TRUE(Ran(ActivateGate({both.data(), want.data(), size.rows, size.width},
                                 DType::kBFloat16, nullptr)));
    args.gated = true;
    args.linear.out = got.data();
    ASSERT_TRUE(Ran(SkinnyLinear(args, nullptr)));
    ExpectSame(got, want);
  }
}

}  // namespace
}  // namespace penstock::shard::cuda
