// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011). A number depends only on (seed, sibling, position, token id). So a result
// does not depend on other sequences, steps, preemption or restarts.
//
// The following is part of the interface: the same seed gives the same tokens in every version.
//   key     = (seed low, seed high)
//   counter = (position, sibling, token id / 4, 0)
//   word    = output[token id % 4]
//   uniform = (word + 0.5) * 2^-32, in (0, 1), as double
#pragma once

#include <array>
#include <cstdint>

namespace penstock::shard {

using PhiloxBlock = std::array<std::uint32_t, 4>;

constexpr PhiloxBlock Philox4x32(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53u;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57u;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

constexpr double PhiloxUniform(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }

// The noise of one position. Calls with ascending token ids compute each block of four only once.
class TokenNoise {
 public:
  constexpr TokenNoise(std::uint64_t seed, std::uint32_t sibling, std::uint32_t position)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        position_(position),
        sibling_(sibling) {}

  constexpr double Uniform(std::uint32_t token) {
    const std::uint32_t group = token / 4;
    if (!filled_ || group != group_) {
      block_ = Philox4x32({position_, sibling_, group, 0}, key_);
      group_ = group;
      filled_ = true;
    }
    return PhiloxUniform(block_[token % 4]);
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t position_;
  std::uint32_t sibling_;
  std::uint32_t group_ = 0;
  bool filled_ = false;
  PhiloxBlock block_{};
};

}  // namespace penstock::shard
