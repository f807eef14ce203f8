// Activations, gates and positions against plain loops in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
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

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

class GatesTest : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override { PENSTOCK_DEVICE_OR_SKIP(); }

  Values Random(std::size_t count, float scale = 1.0f) {
    return Values::Random(count, GetParam(), scale, generator_);
  }
  Values Zeros(std::size_t count) { return Values::Zeros(count, GetParam()); }
  void ExpectNear(const Values& got, const std::vector<double>& want) {
    const double relative = GetParam() == DType::kFloat32 ? 1e-5 : 2e-2;
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], relative * (1.0 + std::abs(want[i]))) << "element " << i;
    }
  }

  std::mt19937 generator_{20261127};
};

TEST_P(GatesTest, EveryActivationAloneAndAsAGate) {
  const std::pair<Activation, std::function<double(double)>> activations[] = {
      {Activation::kSilu, [](double x) { return x * Sigmoid(x); }},
      {Activation::kGelu, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
      {Activation::kGeluTanh,
       [](double x) {
         return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
       }},
      {Activation::kRelu, [](double x) { return std::max(x, 0.0); }},
      {Activation::kReluSquared, [](double x) { return std::max(x, 0.0) * std::max(x, 0.0); }}};
  for (const auto& [activation, function] : activations) {
    for (const std::uint32_t width : {77u, 2056u}) {
      const std::uint32_t rows = 2;
      const Values in = Random(rows * 2 * width, 3.0f);
      std::vector<double> alone, gated;
      for (std::uint32_t i = 0; i < rows * 2 * width; ++i) alone.push_back(function(in[i]));
      for (std::uint32_t i = 0; i < rows * width; ++i) {
        const std::uint32_t gate = i / width * 2 * width + i % width;
        gated.push_back(function(in[gate]) * in[gate + width]);
      }
      Values out = Zeros(alone.size());
      ASSERT_TRUE(
          Ran(Activate({in.data(), out.data(), rows, 2 * width, activation}, GetParam(), nullptr)));
      ExpectNear(out, alone);
      Values product = Zeros(gated.size());
      ASSERT_TRUE(Ran(
          ActivateGate({in.data(), product.data(), rows, width, activation}, GetParam(), nullptr)));
      ExpectNear(product, gated);
    }
  }
}

TEST_P(GatesTest, BoundedGatesBoundBothHalves) {
  const std::uint32_t rows = 2, width = 40;
  const Values in = Random(rows * 2 * width, 6.0f);
  Values out = Zeros(rows * width);
  std::vector<double> want;
  for (std::uint32_t i = 0; i < rows * width; ++i) {
    const std::uint32_t at = i / width * 2 * width + i % width;
    const double g = std::min(in[at], 2.5), u = std::clamp(in[at + width], -2.5, 2.5);
    want.push_back((u + 1) * g * Sigmoid(1.7 * g));
  }
  ASSERT_TRUE(Ran(
      ActivateBoundedGate({in.data(), out.data(), rows, width, 1.7f, 2.5f}, GetParam(), nullptr)));
  ExpectNear(out, want);
}

TEST_P(GatesTest, SigmoidGatesOfElementsAndOfRows) {
  const std::uint32_t rows = 3, width = 40;
  for (const bool one_per_row : {false, true}) {
    Values values = Random(rows * width);
    const Values gates = Random(one_per_row ? rows : rows * width, 3.0f);
    std::vector<double> want;
    for (std::uint32_t i = 0; i < rows * width; ++i) {
      want.push_back(values[i] * Sigmoid(gates[one_per_row ? i / width : i]));
    }
    ASSERT_TRUE(Ran(MultiplyBySigmoid({values.data(), gates.data(), rows, width, one_per_row},
                                      GetParam(), nullptr)));
    ExpectNear(values, want);
  }
}

TEST_P(GatesTest, ClampsAndKeepsNaN) {
  for (const std::uint32_t count : {9u, 2048u}) {
    Values values = Random(count, 2.0f);
    values.Set(1, std::nanf(""));
    std::vector<double> want;
    for (std::uint32_t i = 0; i < count; ++i) want.push_back(std::clamp(values[i], -0.5, 0.5));
    ASSERT_TRUE(Ran(Clamp(values.data(), count, 0.5f, GetParam(), nullptr)));
    EXPECT_TRUE(std::isnan(values[1]));
    values.Set(1, 0.0f), want[1] = 0.0;
    ExpectNear(values, want);
  }
}

TEST_P(GatesTest, EmbeddingsAreScaled) {
  const Values table = Random(2 * 64);
  const SharedVector<std::int32_t> tokens = {1};
  Values out = Zeros(64);
  EmbedArgs args{tokens.data(), table.data(), out.data(), 1, 64, 0, 2};
  args.scale = 8.0f;
  ASSERT_TRUE(Ran(Embed(args, GetParam(), nullptr)));
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], table[64 + i] * 8);
}

TEST_P(GatesTest, AddsRowsOfATableAndNoneBehindItsEnd) {
  const std::uint32_t width = 24;
  const Values table = Random(5 * width);
  const SharedVector<std::int32_t> positions = {0, 2, 7};
  Values out = Random(3 * width);
  std::vector<double> want;
  const std::uint32_t entries[] = {2, 4, 4};
  for (std::uint32_t i = 0; i < 3 * width; ++i) {
    want.push_back(out[i] + table[entries[i / width] * width + i % width]);
  }
  ASSERT_TRUE(Ran(AddPositions({positions.data(), table.data(), out.data(), 3, width, 2, 5},
                               GetParam(), nullptr)));
  ExpectNear(out, want);
}

TEST_P(GatesTest, AddsSinusoids) {
  const std::uint32_t width = 16;
  const SharedVector<std::int32_t> positions = {0, 18};
  Values out = Zeros(2 * width);
  std::vector<double> want;
  for (std::uint32_t i = 0; i < 2 * width; ++i) {
    const double angle = (positions[i / width] + 2) * std::pow(1e-4, i % 8 / 7.0);
    want.push_back(i % width < 8 ? std::sin(angle) : std::cos(angle));
  }
  ASSERT_TRUE(
      Ran(AddPositions({positions.data(), nullptr, out.data(), 2, width, 2}, GetParam(), nullptr)));
  ExpectNear(out, want);
}

INSTANTIATE_TEST_SUITE_P(Elements, GatesTest, testing::Values(DType::kFloat32, DType::kBFloat16),
                         [](const auto& param) { return std::string(DTypeName(param.param)); });

TEST(ScaleLogitsTest, ScalesThenCaps) {
  PENSTOCK_DEVICE_OR_SKIP();
  for (const std::uint32_t count : {7u, 1024u}) {
    for (const float cap : {0.0f, 3.0f}) {
      SharedVector<float> logits;
      std::vector<double> want;
      for (std::uint32_t i = 0; i < count; ++i) {
        logits.push_back(static_cast<float>(i % 29) - 14.0f);
        const double scaled = logits.back() * 0.5;
        want.push_back(cap == 0.0f ? scaled : cap * std::tanh(scaled / cap));
      }
      ASSERT_TRUE(Ran(ScaleLogits(logits.data(), count, 0.5f, cap, nullptr)));
      for (std::uint32_t i = 0; i < count; ++i) ASSERT_NEAR(logits[i], want[i], 1e-5) << i;
    }
  }
}

}  // namespace
}  // namespace penstock::shard::cuda
