#include "shard/weights/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace penstock::shard {
namespace {

std::uint16_t Narrow(float value, DType dtype) {
  std::uint16_t out = 0;
  ConvertElements(&value, DType::kFloat32, &out, dtype, 1);
  return out;
}

float Widen(std::uint16_t bits, DType dtype) {
  float out = 0;
  ConvertElements(&bits, dtype, &out, DType::kFloat32, 1);
  return out;
}

TEST(Convert, EveryShortFloatIsTheSameAfterFloat32) {
  for (DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const float wide = Widen(static_cast<std::uint16_t>(bits), dtype);
      if (std::isnan(wide)) {
        EXPECT_TRUE(std::isnan(Widen(Narrow(wide, dtype), dtype)));
      } else {
        ASSERT_EQ(Narrow(wide, dtype), bits);
      }
    }
  }
}

TEST(Convert, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(Narrow(std::bit_cast<float>(0x3f808000u), DType::kBFloat16),
            0x3f80);  // tie, even below
  EXPECT_EQ(Narrow(std::bit_cast<float>(0x3f818000u), DType::kBFloat16),
            0x3f82);  // tie, even above
  EXPECT_EQ(Narrow(std::bit_cast<float>(0x3f808001u), DType::kBFloat16), 0x3f81);
  EXPECT_EQ(Narrow(1.0f + 1.0f / 2048, DType::kFloat16), 0x3c00);
  EXPECT_EQ(Narrow(1.0f + 3.0f / 2048, DType::kFloat16), 0x3c02);
  EXPECT_EQ(Narrow(std::numeric_limits<float>::max(), DType::kBFloat16), 0x7f80);  // infinity
  EXPECT_EQ(Narrow(70000.0f, DType::kFloat16), 0x7c00);
}

TEST(Convert, NeitherSideNeedsAlignment) {
  std::vector<char> from(1 + 3 * 2), to(1 + 3 * 4);
  const std::uint16_t values[] = {0x3f80, 0x4000, 0xc040};  // 1, 2, -3 in bfloat16
  std::copy_n(reinterpret_cast<const char*>(values), 6, from.data() + 1);
  ConvertElements(from.data() + 1, DType::kBFloat16, to.data() + 1, DType::kFloat32, 3);
  float out[3];
  std::copy_n(to.data() + 1, 12, reinterpret_cast<char*>(out));
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], 2.0f);
  EXPECT_EQ(out[2], -3.0f);
}

TEST(Convert, ConvertsBetweenTheShortTypesThroughFloat32) {
  const std::uint16_t half = 0x3555;  // 1/3 in float16
  std::uint16_t out = 0;
  ConvertElements(&half, DType::kFloat16, &out, DType::kBFloat16, 1);
  EXPECT_EQ(out, Narrow(Widen(half, DType::kFloat16), DType::kBFloat16));
}

}  // namespace
}  // namespace penstock::shard
