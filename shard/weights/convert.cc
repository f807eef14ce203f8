#include "shard/weights/convert.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace penstock::shard {
namespace {

float FromBf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// libgcc converts halves one call at a time; a table is 20 times as fast.
const std::array<float, 65536>& HalfTable() {
  static const auto* table = [] {
    auto* values = new std::array<float, 65536>;
    for (std::uint32_t i = 0; i < values->size(); ++i) {
      (*values)[i] = static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(i)));
    }
    return values;
  }();
  return *table;
}

std::uint16_t ToHalf(float value) {
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}

template <class In, class Load, class Out, class Store>
void Map(const void* from, void* to, std::size_t count, Load load, Store store) {
  // memcpy: stored tensors need not be aligned.
  const auto* in = static_cast<const char*>(from);
  auto* out = static_cast<char*>(to);
  for (std::size_t i = 0; i < count; ++i) {
    In raw;
    std::memcpy(&raw, in + i * sizeof(In), sizeof(In));
    const Out value = store(load(raw));
    std::memcpy(out + i * sizeof(Out), &value, sizeof(Out));
  }
}

template <class In, class Load>
void MapTo(const void* from, void* to, DType to_type, std::size_t count, Load load) {
  const auto same = [](float value) { return value; };
  switch (to_type) {
    case DType::kFloat32:
      return Map<In, Load, float>(from, to, count, load, same);
    case DType::kBFloat16:
      return Map<In, Load, std::uint16_t>(from, to, count, load, ToBf16);
    case DType::kFloat16:
      return Map<In, Load, std::uint16_t>(from, to, count, load, ToHalf);
  }
}

}  // namespace

void ConvertElements(const void* from, DType from_type, void* to, DType to_type,
                     std::size_t count) {
  if (from_type == to_type) {
    std::memcpy(to, from, count * DTypeBytes(from_type));
    return;
  }
  switch (from_type) {
    case DType::kFloat32:
      return MapTo<float>(from, to, to_type, count, [](float value) { return value; });
    case DType::kBFloat16:
      return MapTo<std::uint16_t>(from, to, to_type, count, FromBf16);
    case DType::kFloat16: {
      const auto& table = HalfTable();
      return MapTo<std::uint16_t>(from, to, to_type, count,
                                  [&table](std::uint16_t bits) { return table[bits]; });
    }
  }
}

}  // namespace penstock::shard
