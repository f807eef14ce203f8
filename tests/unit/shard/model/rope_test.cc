// Frequencies against values of transformers 5.23 (modeling_rope_utils.py).
#include <gtest/gtest.h>

#include <cmath>

#include "shard/model/rope_table.h"

namespace penstock::shard {
namespace {

RopeSpec Llama3() {
  RopeSpec rope;
  rope.type = RopeType::kLlama3;
  rope.theta = 500000.0;
  rope.factor = 8.0;
  rope.original_max_position = 8192;
  return rope;
}

RopeSpec Yarn() {
  RopeSpec rope;
  rope.type = RopeType::kYarn;
  rope.theta = 1000000.0;
  rope.factor = 4.0;
  rope.original_max_position = 32768;
  rope.attention_factor = 1.138629436;
  return rope;
}

void ExpectFrequencies(RopeSpec rope, std::uint32_t dim,
                       const std::vector<std::pair<int, double>>& expected,
                       std::uint32_t length = 0) {
  rope.dim = dim;
  const std::vector<float> frequencies = RopeFrequencies(rope, length);
  ASSERT_EQ(frequencies.size(), dim / 2);
  for (const auto& [index, value] : expected) {
    EXPECT_NEAR(frequencies[index] / value, 1.0, 2e-7) << index;
  }
}

TEST(Rope, FrequenciesOfEachType) {
  ExpectFrequencies(RopeSpec(), 64,
                    {{0, 1},
                     {1, 0.749894202},
                     {7, 0.133352146},
                     {12, 0.0316227786},
                     {16, 0.00999999978},
                     {20, 0.00316227786},
                     {31, 0.00013335215}});
  RopeSpec linear;
  linear.type = RopeType::kLinear;
  linear.factor = 2.5;
  ExpectFrequencies(linear, 64,
                    {{0, 0.400000006},
                     {1, 0.299957693},
                     {7, 0.0533408597},
                     {12, 0.0126491114},
                     {16, 0.00399999972},
                     {20, 0.00126491114},
                     {31, 5.33408602e-05}});
  ExpectFrequencies(Llama3(), 64,
                    {{0, 1},
                     {1, 0.663601279},
                     {7, 0.0566696189},
                     {12, 0.00729266508},
                     {16, 0.000524846022},
                     {20, 3.42810235e-05},
                     {31, 3.7673226e-07}});
  ExpectFrequencies(Yarn(), 64,
                    {{0, 1},
                     {1, 0.649381638},
                     {7, 0.0486967526},
                     {12, 0.00515479548},
                     {16, 0.000583333371},
                     {20, 4.44569851e-05},
                     {31, 3.84981632e-07}});
  RopeSpec fine = Yarn();
  fine.truncate = false;
  fine.beta_fast = 16.0;
  ExpectFrequencies(fine, 64,
                    {{0, 1},
                     {1, 0.649381638},
                     {7, 0.0486967526},
                     {12, 0.00562341325},
                     {16, 0.000696759962},
                     {20, 4.44569851e-05},
                     {31, 3.84981632e-07}});
}

TEST(Rope, DynamicFrequenciesFallWithTheLengthOfTheText) {
  RopeSpec rope;
  rope.type = RopeType::kDynamic;
  rope.factor = 4.0;
  rope.original_max_position = 2048;
  rope.dim = 64;
  EXPECT_EQ(RopeFrequencies(rope, 2048), RopeFrequencies(rope));
  ExpectFrequencies(rope, 64,
                    {{0, 1},
                     {1, 0.749846995},
                     {7, 0.133293405},
                     {12, 0.0315988995},
                     {16, 0.00998993404},
                     {20, 0.00315829925},
                     {31, 0.000133092195}},
                    2049);
  ExpectFrequencies(rope, 64,
                    {{0, 1},
                     {1, 0.705043435},
                     {7, 0.0865986496},
                     {12, 0.015086568},
                     {16, 0.00372781185},
                     {20, 0.000921122672},
                     {31, 1.97102472e-05}},
                    5000);
}

TEST(Rope, LongropeHasOtherFactorsForLongerTexts) {
  RopeSpec rope;
  rope.type = RopeType::kLongrope;
  rope.original_max_position = 2048;
  for (int i = 0; i < 32; ++i) {
    rope.factors.push_back(1 + 0.01 * i);
    rope.long_factors.push_back(1 + 0.5 * i);
  }
  ExpectFrequencies(rope, 64, {{0, 1}, {1, 0.74246949}, {16, 0.00862068962}, {31, 0.000101795536}},
                    2048);
  ExpectFrequencies(rope, 64, {{0, 1}, {1, 0.499929428}, {16, 0.00111111114}, {31, 8.08194818e-06}},
                    2049);
}

TEST(Rope, TableHoldsScaledCosinesAndSines) {
  RopeSpec rope = Yarn();
  rope.dim = 64;
  const RopeTable table = BuildRopeTable(rope, 3);
  ASSERT_EQ(table.cos.size(), 3u * 32);
  EXPECT_FLOAT_EQ(table.cos[0], 1.138629436f);
  EXPECT_FLOAT_EQ(table.sin[0], 0.0f);
  EXPECT_FLOAT_EQ(table.cos[2 * 32], static_cast<float>(std::cos(2.0) * 1.138629436));
  EXPECT_FLOAT_EQ(table.sin[2 * 32], static_cast<float>(std::sin(2.0) * 1.138629436));
}

}  // namespace
}  // namespace penstock::shard
