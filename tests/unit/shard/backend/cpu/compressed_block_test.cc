// Compressed weights are unpacked without loss, whatever their bits are.
#include "shard/backend/cpu/formats/compressed_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "shard/backend/cpu/formats/weight_format.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kGroupWeights = kPlainGroupBytes / 2;

std::uint16_t Bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

struct Panel {
  bool fits = true;
  std::vector<std::byte> bytes;
  CompressedHeader First() const {
    CompressedHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    return header;
  }
};

class CompressedWeights : public testing::Test {
 protected:
  // A panel of them, block by block.
  Panel Compress(const std::vector<std::uint16_t>& weights) {
    const std::size_t plain = weights.size() * 2;
    Panel panel;
    panel.bytes.assign(CompressedBytes(plain), std::byte{0xee});
    std::byte* out = panel.bytes.data();
    for (std::size_t at = 0; at < plain && panel.fits; at += kPlainBlockBytes) {
      const std::size_t bytes = std::min(kPlainBlockBytes, plain - at);
      panel.fits =
          CompressBlock(reinterpret_cast<const std::byte*>(weights.data()) + at, bytes, raw_, out);
      out += CompressedBytes(bytes);
    }
    return panel;
  }

  void ExpectSame(const std::vector<std::uint16_t>& weights, const std::string& what) {
    SCOPED_TRACE(what + ", " + std::to_string(weights.size()) + " weights");
    const Panel panel = Compress(weights);
    ASSERT_TRUE(panel.fits);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      ASSERT_EQ(CompressedWeight(panel.bytes.data(), i, memory_.data()), weights[i])
          << "weight " << i;
    }
  }

  static std::vector<std::uint16_t> Made(std::size_t count,
                                         const std::function<std::uint16_t()>& one) {
    std::vector<std::uint16_t> weights(count);
    for (std::uint16_t& weight : weights) weight = one();
    return weights;
  }

  static constexpr std::size_t kRaw = 64;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kRaw * kPlainBlockBytes);
  Overflow raw_{memory_.data(), kRaw, kPlainBlockBytes};
  std::mt19937 random_{5};
};

TEST_F(CompressedWeights, UnpackToEveryWeight) {
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::student_t_distribution<float> heavy(2.0f);
  for (const std::size_t groups : {1u, 2u, 31u, 32u, 33u, 70u}) {
    const std::size_t count = groups * kGroupWeights;
    ExpectSame(Made(count, [&] { return Bits(normal(random_)); }), "normal");
    ExpectSame(Made(count, [&] { return Bits(heavy(random_)); }), "heavy tails");
    ExpectSame(Made(count, [&] { return static_cast<std::uint16_t>(random_()); }), "any bits");
    ExpectSame(Made(count, [] { return std::uint16_t{0}; }), "zeros");
    ExpectSame(Made(count, [&] { return Bits(random_() % 2 == 0 ? INFINITY : -NAN); }),
               "no numbers");
  }
}

TEST_F(CompressedWeights, StoresFewUnusualWeightsApartAndManyInTheOverflow) {
  for (std::size_t strange = 0; strange < 24; ++strange) {
    std::vector<std::uint16_t> weights = Made(
        kPlainBlockBytes / 2, [&] { return Bits(0.5f + static_cast<float>(random_() % 100)); });
    for (std::size_t i = 0; i < strange; ++i) {
      weights[(i * 1201 + 77) % weights.size()] = static_cast<std::uint16_t>((0x10 + i) << 8 | 3);
    }
    ExpectSame(weights, std::to_string(strange) + " strange ones");
    const std::uint16_t patches = Compress(weights).First().patches;
    // Weights from 0.5 to 100 have four upper bytes, so twelve of the strange ones fit the table.
    if (strange <= 12) {
      EXPECT_EQ(patches, 0);
    } else {
      EXPECT_EQ(patches, strange - 12 <= kMostPatches ? strange - 12 : kRawBlock);
    }
  }
}

TEST_F(CompressedWeights, NormalWeightsHaveHardlyAnyApart) {
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::size_t patches = 0;
  constexpr std::size_t kBlocks = 200;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const CompressedHeader header =
        Compress(Made(kPlainBlockBytes / 2, [&] { return Bits(normal(random_)); })).First();
    ASSERT_NE(header.patches, kRawBlock);
    patches += header.patches;
  }
  EXPECT_LT(patches, kBlocks);
}

TEST_F(CompressedWeights, FailsWhenTheOverflowIsUsedUp) {
  raw_.~Overflow();
  new (&raw_) Overflow(memory_.data(), 2, kPlainBlockBytes);
  const auto any = [&] {
    return Made(kPlainBlockBytes / 2, [&] { return std::uint16_t(random_()); });
  };
  EXPECT_TRUE(Compress(any()).fits);
  EXPECT_TRUE(Compress(any()).fits);
  EXPECT_FALSE(Compress(any()).fits);
  std::normal_distribution<float> normal;
  EXPECT_TRUE(Compress(Made(kPlainBlockBytes / 2, [&] { return Bits(normal(random_)); })).fits);
}

}  // namespace
}  // namespace penstock::shard::cpu
