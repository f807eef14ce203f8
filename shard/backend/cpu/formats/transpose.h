// A small transpose for packing, with instructions that every x86-64 has: a square of 32-bit units
// from rows that lie anywhere to rows of `stride` units.
#pragma once

#include <emmintrin.h>

#include <cstddef>

namespace penstock::shard::cpu {

inline constexpr std::size_t kUnit = 4;    // bytes: a float32 or a pair of bfloat16
inline constexpr std::size_t kSquare = 4;  // units on each side

// Unit i * `stride` + j of `out` = unit `first` + i of rows[j], for i, j < kSquare.
inline void TransposeSquare(const std::byte* const* rows, std::size_t first, std::byte* out,
                            std::size_t stride) {
  const auto row = [&](std::size_t j) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[j] + kUnit * first));
  };
  const __m128i low01 = _mm_unpacklo_epi32(row(0), row(1));
  const __m128i low23 = _mm_unpacklo_epi32(row(2), row(3));
  const __m128i high01 = _mm_unpackhi_epi32(row(0), row(1));
  const __m128i high23 = _mm_unpackhi_epi32(row(2), row(3));
  const auto store = [&](std::size_t i, __m128i value) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + kUnit * i * stride), value);
  };
  store(0, _mm_unpacklo_epi64(low01, low23));
  store(1, _mm_unpackhi_epi64(low01, low23));
  store(2, _mm_unpacklo_epi64(high01, high23));
  store(3, _mm_unpackhi_epi64(high01, high23));
}

}  // namespace penstock::shard::cpu
