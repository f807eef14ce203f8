// Weights of 16-bit integers: no sum leaves its register whatever is multiplied, and the product
// errs less than rounding activations to bfloat16 would. The bounds are those of
// docs/decisions/0035.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>

#include "shard/backend/cpu/kernels.h"
#include "tests/unit/shard/backend/cpu/gemm_problem.h"

namespace penstock::shard::cpu {
namespace {

using Values = std::function<float(std::size_t)>;

float FromBf16(std::uint16_t bits) { return ReadElement(&bits, 0, DType::kBFloat16); }

class Int16 : public testing::Test {
 protected:
  void SetUp() override {
    const Kernels* kernels = FindKernels(Isa::kAvx512, DType::kBFloat16);
    const auto best = ChooseIsa();
    if (!best.ok() || *best < Isa::kAvx512 || kernels->formats[FormatId::kInt16].gemm == nullptr) {
      GTEST_SKIP() << "this processor has no AVX512_VNNI";
    }
    kind_ = {*kernels, FormatId::kInt16};
  }

  static constexpr std::size_t kRows = 15;
  static constexpr std::size_t kInner = 640;
  static constexpr std::size_t kOutputs = 40;

  // Weight (column, K) and activation (row, K) by index.
  std::vector<float> Product(const Values& weight, const Values& activation) {
    weights_.clear();
    for (std::size_t i = 0; i < kOutputs * kInner; ++i) {
      weights_.push_back(ToBf16(weight(i)));
    }
    Problem problem(kind_, kRows, kInner, kOutputs, false);
    problem.Pack(weights_.data());
    std::fill(problem.packed_bias.begin(), problem.packed_bias.end(), 0.0f);
    exact_.assign(kRows * kOutputs, 0.0);
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t k = 0; k < kInner; ++k) {
        problem.input[row * problem.stride + k] = activation(row * kInner + k);
      }
    }
    for (std::size_t i = 0; i < exact_.size(); ++i) {
      exact_[i] = Dot(&problem.input[i / kOutputs * problem.stride], i % kOutputs, false);
    }
    rounded_.clear();
    for (std::size_t i = 0; i < exact_.size(); ++i) {
      rounded_.push_back(Dot(&problem.input[i / kOutputs * problem.stride], i % kOutputs, true));
    }
    for (std::size_t row = 0; row < kRows; ++row) problem.QuantizeRow(row);
    unpacked_.resize(kOutputs * kInner);
    for (std::size_t c = 0; c < kOutputs; ++c) {
      problem.matrix.UnpackRow(c, &unpacked_[c * kInner]);
    }
    return Multiply(problem, Plain(kind_), 0, kRows, 1);
  }

  double Dot(const float* row, std::size_t column, bool to_bfloat16) const {
    double sum = 0;
    for (std::size_t k = 0; k < kInner; ++k) {
      const float x = to_bfloat16 ? FromBf16(ToBf16(row[k])) : row[k];
      sum += double{x} * FromBf16(weights_[column * kInner + k]);
    }
    return sum;
  }

  // The error of the products, relative to their size.
  template <class Sums>
  double Error(const Sums& sums) const {
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < exact_.size(); ++i) {
      error += std::pow(sums[i] - exact_[i], 2);
      size += std::pow(exact_[i], 2);
    }
    return std::sqrt(error / size);
  }

  Case kind_;
  std::vector<std::uint16_t> weights_;
  std::vector<float> unpacked_;
  std::vector<double> exact_;    // of the weights and activations as given
  std::vector<double> rounded_;  // with activations of bfloat16
};

// Every activation as large as its group allows, with the sign of its weight: all products add up.
TEST_F(Int16, NoActivationsOverflowASum) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const std::pair<const char*, Values> kinds[] = {
      {"equal", [](std::size_t) { return 1.0f; }},
      {"just below a power of two", [](std::size_t) { return 0.99609375f; }},
      {"of sizes that all are rounded up",
       [](std::size_t i) { return i % 128 < 2 ? 8.0f : 0.998f; }},
      {"normal", [&](std::size_t) { return normal(random); }},
      {"one of each group", [](std::size_t i) { return i % 128 == 5 ? 3.0f : 1e-4f; }},
      {"nothing else", [](std::size_t i) { return i % 128 == 77 ? 1e30f : 0.0f; }},
      {"the largest", [](std::size_t) { return 3.38e38f; }},
      {"tiny", [](std::size_t) { return 1e-29f; }},
  };
  for (const auto& [name, values] : kinds) {
    for (const float sign : {1.0f, -1.0f}) {
      const auto weight = [&values, sign](std::size_t i) { return sign * std::fabs(values(i)); };
      // Columns differ in sign only together with the rows, so that no product cancels another.
      const auto out = Product(weight, [](std::size_t) { return 1e-3f; });
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i] / exact_[i], 1.0, 1e-3) << name << ", element " << i;
      }
    }
  }
}

// Even where integers are as large as they may be, the weights are nearer to those given than
// these are to what was rounded to bfloat16.
TEST_F(Int16, WeightsHardlyChange) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::student_t_distribution<float> heavy(3);
  const std::pair<const char*, Values> kinds[] = {
      {"normal", [&](std::size_t) { return 0.02f * normal(random); }},
      {"heavy", [&](std::size_t) { return 0.02f * heavy(random); }},
      {"outlier", [&](std::size_t i) { return (i % 128 == 9 ? 4.0f : 0.02f) * normal(random); }},
  };
  for (const auto& [name, values] : kinds) {
    (void)Product(values, [](std::size_t) { return 1.0f; });
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const double weight = FromBf16(weights_[i]);
      error += std::pow(unpacked_[i] - weight, 2);
      size += weight * weight;
    }
    std::cout << name << " weights: " << std::sqrt(error / size) << " of their rms\n";
    EXPECT_LT(std::sqrt(error / size), 2e-4) << name;
  }
}

TEST_F(Int16, ErrsLessThanActivationsOfBFloat16) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::student_t_distribution<float> heavy(3);
  const auto weight = [&](std::size_t) { return 0.02f * normal(random); };
  const std::pair<const char*, Values> kinds[] = {
      {"normal", [&](std::size_t) { return normal(random); }},
      {"heavy", [&](std::size_t) { return heavy(random); }},
      {"one of 128 a hundred times larger",
       [&](std::size_t i) { return (i % 128 == 3 ? 100.0f : 1.0f) * normal(random); }},
      {"one of 640 ten thousand times larger",
       [&](std::size_t i) { return (i % 640 == 3 ? 1e4f : 1.0f) * normal(random); }},
  };
  for (const auto& [name, values] : kinds) {
    const auto out = Product(weight, values);
    const double ours = Error(out);
    const double rounding = Error(rounded_);
    std::cout << name << ": " << ours << ", with activations of bfloat16 " << rounding << '\n';
    EXPECT_LT(ours, 0.6 * rounding) << name;
  }
}

TEST_F(Int16, WeightsThatAreNotFiniteAffectOnlyTheirColumn) {
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    const auto out = Product([bad](std::size_t i) { return i == 3 * kInner + 200 ? bad : 0.5f; },
                             [](std::size_t) { return 1.0f; });
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(std::isnan(out[i]), i % kOutputs == 3) << "element " << i;
    }
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
