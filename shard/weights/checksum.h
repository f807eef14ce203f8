// A checksum of memory that is about as fast as reading it: the four accumulators of XXH64
// (Y. Collet) with a simpler end. It finds truncated and damaged files, not forged ones.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace penstock::shard {

inline std::uint64_t Checksum(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87;
  constexpr std::uint64_t kPrime2 = 0xc2b2ae3d27d4eb4f;
  std::uint64_t lanes[4] = {kPrime1 + kPrime2, kPrime2, 0, ~kPrime1};
  const auto mix = [&](std::uint64_t& lane, const std::byte* from, std::size_t size) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, size);
    lane = std::rotl(lane + word * kPrime2, 31) * kPrime1;
  };
  std::size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32) {
    for (std::size_t lane = 0; lane < 4; ++lane) mix(lanes[lane], bytes.data() + i + 8 * lane, 8);
  }
  for (; i + 8 <= bytes.size(); i += 8) mix(lanes[i / 8 % 4], bytes.data() + i, 8);
  if (i < bytes.size()) mix(lanes[0], bytes.data() + i, bytes.size() - i);
  std::uint64_t hash = bytes.size();
  for (std::uint64_t lane : lanes) {
    hash = (hash ^ std::rotl(lane, 27)) * kPrime1;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace penstock::shard
