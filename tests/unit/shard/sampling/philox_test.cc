#include "shard/sampling/philox.h"

#include <gtest/gtest.h>

namespace penstock::shard {
namespace {

// Known answers published with the generator (Random123, kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformLiesStrictlyBetweenZeroAndOne) {
  EXPECT_GT(PhiloxUniform(0), 0.0);
  EXPECT_LT(PhiloxUniform(~0u), 1.0);
}

TEST(TokenNoise, DependsOnTheTokenNotOnTheOrder) {
  TokenNoise ascending(42, 1, 7);
  TokenNoise jumping(42, 1, 7);
  const double late = jumping.Uniform(1001);
  for (std::uint32_t token = 0; token < 1001; ++token) ascending.Uniform(token);
  EXPECT_EQ(ascending.Uniform(1001), late);
}

TEST(TokenNoise, DependsOnEveryPartOfTheKey) {
  const double base = TokenNoise(1, 0, 0).Uniform(5);
  EXPECT_NE(TokenNoise(2, 0, 0).Uniform(5), base);
  EXPECT_NE(TokenNoise(1ull << 32 | 1, 0, 0).Uniform(5), base);
  EXPECT_NE(TokenNoise(1, 1, 0).Uniform(5), base);
  EXPECT_NE(TokenNoise(1, 0, 1).Uniform(5), base);
  EXPECT_NE(TokenNoise(1, 0, 0).Uniform(6), base);
}

}  // namespace
}  // namespace penstock::shard
