// Small transposes for packing, with instructions that every x86-64 has: a square of units from
// rows that lie anywhere to rows of `stride` units.
#pragma once

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>

namespace penstock::shard::cpu {

// Unit i * `stride` + j of `out` = unit `first` + i of rows[j], for i, j < kSide.
template <class Unit>
struct Transpose;

template <>
struct Transpose<std::uint32_t> {
  static constexpr std::size_t kSide = 4;
  static void Square(const std::byte* const* rows, std::size_t first, std::byte* out,
                     std::size_t stride) {
    const auto row = [&](std::size_t j) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[j] + 4 * first));
    };
    const __m128i low01 = _mm_unpacklo_epi32(row(0), row(1));
    const __m128i low23 = _mm_unpacklo_epi32(row(2), row(3));
    const __m128i high01 = _mm_unpackhi_epi32(row(0), row(1));
    const __m128i high23 = _mm_unpackhi_epi32(row(2), row(3));
    const auto store = [&](std::size_t i, __m128i value) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 4 * i * stride), value);
    };
    store(0, _mm_unpacklo_epi64(low01, low23));
    store(1, _mm_unpackhi_epi64(low01, low23));
    store(2, _mm_unpacklo_epi64(high01, high23));
    store(3, _mm_unpackhi_epi64(high01, high23));
  }
};

template <>
struct Transpose<std::uint16_t> {
  static constexpr std::size_t kSide = 8;
  static void Square(const std::byte* const* rows, std::size_t first, std::byte* out,
                     std::size_t stride) {
    // Pairs of rows become rows of pairs: then two squares of 4 x 4 pairs.
    std::byte pairs[4][32];
    std::byte turned[8][16];
    const std::byte* quads[4];
    for (std::size_t j = 0; j < 4; ++j) {
      const __m128i a = Load(rows[2 * j] + 2 * first);
      const __m128i b = Load(rows[2 * j + 1] + 2 * first);
      Store(pairs[j], _mm_unpacklo_epi16(a, b));
      Store(pairs[j] + 16, _mm_unpackhi_epi16(a, b));
      quads[j] = pairs[j];
    }
    Transpose<std::uint32_t>::Square(quads, 0, turned[0], 4);
    Transpose<std::uint32_t>::Square(quads, 4, turned[4], 4);
    for (std::size_t i = 0; i < kSide; ++i) Store(out + 2 * i * stride, Load(turned[i]));
  }

 private:
  static __m128i Load(const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static void Store(std::byte* to, __m128i value) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
  }
};

}  // namespace penstock::shard::cpu
