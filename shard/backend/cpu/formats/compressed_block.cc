#include "shard/backend/cpu/formats/compressed_block.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>

#include "common/round_up.h"
#include "shard/backend/cpu/formats/weight_format.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kLineWeights = kCacheLineBytes / 2;
constexpr std::size_t kGroupWeights = kPlainGroupBytes / 2;
constexpr std::size_t kRun = 8;  // weights of a line that stay together

using Counts = std::array<std::uint32_t, 256>;

Counts CountHighBytes(const std::uint16_t* weights, std::size_t count) {
  std::array<Counts, 4> parts = {};  // else each waits for the one before to be stored
  for (std::size_t i = 0; i < count; i += parts.size()) {
    for (std::size_t j = 0; j < parts.size(); ++j) ++parts[j][weights[i + j] >> 8];
  }
  Counts counts = {};
  for (std::size_t high = 0; high < counts.size(); ++high) {
    for (const Counts& part : parts) counts[high] += part[high];
  }
  return counts;
}

// Where weight `index` of a group is in its planes.
struct Place {
  std::size_t half;  // of the group: which lower bytes, and which half of a byte of numbers
  std::size_t byte;  // of 64
};
constexpr Place PlaceOf(std::size_t index) {
  const std::size_t line = index / kLineWeights;
  const std::size_t in_line = index % kLineWeights;
  return {line / 2, in_line / kRun * 2 * kRun + line % 2 * kRun + in_line % kRun};
}

// Compresses one half of a group: two of its four lines of 64 bytes.
void CompressHalf(const std::uint16_t* weights, std::size_t half, const std::uint8_t* number_of,
                  std::uint8_t* group) {
  std::uint8_t* low = group + kCacheLineBytes * (1 + half);
  const std::size_t shift = 4 * half;
  for (std::size_t line = 0; line < 2; ++line, weights += kLineWeights) {
    for (std::size_t run = 0; run < kLineWeights / kRun; ++run) {
      const std::size_t to = (2 * run + line) * kRun;
      for (std::size_t i = 0; i < kRun; ++i) {
        const std::uint16_t weight = weights[run * kRun + i];
        low[to + i] = static_cast<std::uint8_t>(weight);
        group[to + i] |= static_cast<std::uint8_t>(number_of[weight >> 8] << shift);
      }
    }
  }
}

}  // namespace

bool CompressBlock(const std::byte* plain, std::size_t bytes, Overflow& overflow, std::byte* out) {
  const auto* weights = reinterpret_cast<const std::uint16_t*>(plain);
  const std::size_t count = bytes / sizeof(std::uint16_t);
  const Counts counts = CountHighBytes(weights, count);
  std::array<std::uint8_t, 256> order;
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  CompressedHeader header;
  const auto table_end = order.begin() + sizeof header.high;
  std::partial_sort(order.begin(), table_end, order.end(), [&](std::uint8_t a, std::uint8_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : a < b;
  });
  std::array<std::uint8_t, 256> number_of = {};
  std::array<bool, 256> known = {};
  std::size_t missing = count;
  for (std::uint8_t i = 0; i < sizeof header.high; ++i) {
    header.high[i] = order[i];
    number_of[order[i]] = i;
    known[order[i]] = true;
    missing -= counts[order[i]];
  }
  if (missing > kMostPatches) {
    const std::optional<std::uint32_t> place = overflow.Add(plain, bytes);
    if (!place.has_value()) return false;
    header.patches = kRawBlock;
    header.raw = *place;
  } else {
    for (std::size_t i = 0; header.patches < missing; ++i) {
      if (known[weights[i] >> 8]) continue;
      header.patch[header.patches++] = {static_cast<std::uint16_t>(i), weights[i]};
    }
  }
  std::memcpy(out, &header, sizeof header);
  auto* group = reinterpret_cast<std::uint8_t*>(out + sizeof header);
  for (std::size_t i = 0; i < count; i += kGroupWeights, group += kCompressedGroupBytes) {
    std::memset(group, 0, kCacheLineBytes);
    for (std::size_t half = 0; half < 2; ++half) {
      CompressHalf(weights + i + half * 2 * kLineWeights, half, number_of.data(), group);
    }
  }
  return true;
}

std::uint16_t CompressedWeight(const std::byte* panel, std::size_t index,
                               const std::byte* overflow) {
  constexpr std::size_t kBlockWeights = kPlainBlockBytes / sizeof(std::uint16_t);
  const std::byte* block = panel + index / kBlockWeights * CompressedBytes(kPlainBlockBytes);
  index %= kBlockWeights;
  CompressedHeader header;
  std::memcpy(&header, block, sizeof header);
  if (header.patches == kRawBlock) {
    std::uint16_t value;
    std::memcpy(&value, overflow + header.raw * kPlainBlockBytes + index * sizeof value,
                sizeof value);
    return value;
  }
  for (std::size_t i = 0; i < header.patches; ++i) {
    if (header.patch[i].weight == index) return header.patch[i].value;
  }
  const auto* group = reinterpret_cast<const std::uint8_t*>(block) + sizeof header +
                      index / kGroupWeights * kCompressedGroupBytes;
  const Place place = PlaceOf(index % kGroupWeights);
  const std::uint8_t number = group[place.byte] >> (4 * place.half) & 0x0f;
  const std::uint8_t low = group[kCacheLineBytes * (1 + place.half) + place.byte];
  return static_cast<std::uint16_t>(header.high[number] << 8 | low);
}

}  // namespace penstock::shard::cpu
