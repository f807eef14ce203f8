// Passes over a row give the results of a plain loop, for any length of the row.
#include "shard/sampling/row_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace penstock::shard {
namespace {

// Has few different values, so the largest occurs several times.
std::vector<float> Row(std::size_t size, std::mt19937& random) {
  std::vector<float> row(size);
  for (float& value : row) value = static_cast<float>(random() % 50) - 60.0f;
  return row;
}

TEST(RowScan, FindsTheFirstOfTheLargest) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (std::size_t size : {1u, 3u, 63u, 64u, 65u, 127u, 128u, 4095u, 4096u, 4161u, 50257u}) {
    const std::vector<float> row = Row(size, random);
    const auto largest = std::max_element(row.begin(), row.end());
    const RowMaximum found = FindMaximum(row);
    EXPECT_EQ(found.token, static_cast<std::uint32_t>(largest - row.begin())) << size;
    EXPECT_EQ(found.logit, *largest) << size;
    EXPECT_FALSE(found.nan) << size;
  }
}

TEST(RowScan, FindsANanAtEveryIndex) {
  std::mt19937 random(3);
  for (std::size_t i = 0; i < 200; ++i) {
    std::vector<float> row = Row(200, random);
    row[i] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(FindMaximum(row).nan) << i;
  }
}

TEST(RowScan, MaximaOfBlocks) {
  std::mt19937 random(4);
  std::vector<float> row = Row(330, random);
  row[70] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> maxima = {1, 2, 3};
  BlockMaxima(row, maxima);
  ASSERT_EQ(maxima.size(), 6u);
  for (std::size_t block = 0; block < maxima.size(); ++block) {
    float largest = -std::numeric_limits<float>::infinity();
    for (std::size_t i = block * 64; i < std::min<std::size_t>(row.size(), block * 64 + 64); ++i) {
      if (row[i] > largest) largest = row[i];
    }
    EXPECT_EQ(maxima[block], largest) << block;
  }
}

// Float32 terms, double sums: relative errors of terms within two units of the last place.
TEST(RowScan, SumsExponentsOfRowsOfAnySize) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 4.0f);
  for (std::size_t size : {1u, 2u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 33u, 4095u, 50257u}) {
    std::vector<float> row(size);
    for (float& value : row) value = normal(random);
    const float maximum = *std::max_element(row.begin(), row.end());
    double expected = 0;
    for (const float value : row) expected += std::exp(double{value - maximum});
    EXPECT_NEAR(SumOfExponents(row, maximum), expected, 2.4e-7 * expected) << size;
  }
}

TEST(RowScan, ExponentsOfEveryIndex) {
  const std::size_t size = 45;
  for (std::size_t i = 0; i < size; ++i) {
    std::vector<float> row(size, -std::numeric_limits<float>::infinity());
    row[i] = 3.0f;
    EXPECT_EQ(SumOfExponents(row, 3.0f), 1.0) << i;
    row[(i + 1) % size] = -200.0f;
    EXPECT_EQ(SumOfExponents(row, 3.0f), 1.0) << i;
    row[(i + 2) % size] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(SumOfExponents(row, 3.0f))) << i;
  }
}

// The sums of a fixed row, as measured with SSE2 and with AVX2.
TEST(RowScan, SumHasTheSameBitsOnEveryProcessor) {
  std::mt19937 random(5);
  std::vector<float> row(1003);
  for (float& value : row) value = static_cast<float>(random() >> 8) * -0x1p-20f;
  EXPECT_EQ(SumOfExponents(row, 0.0f), 0x1.016b7ede62567p+6);
}

}  // namespace
}  // namespace penstock::shard
