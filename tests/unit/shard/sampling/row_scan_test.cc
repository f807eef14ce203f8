// Searches over a row give what a plain loop gives, whatever the row's size.
#include "shard/sampling/row_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace penstock::shard {
namespace {

// Few different values, so that the largest is there several times.
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

TEST(RowScan, NoticesNanAtEveryPlace) {
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

}  // namespace
}  // namespace penstock::shard
