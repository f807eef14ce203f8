// 8 lanes of float32. Included once by the file that is compiled for AVX2 and FMA; everything is
// internal to that file, so that such code does not get into files for other processors.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kPanelVectors = 2;
constexpr int kRegisters = 16;
using Vec = __m256;
using Ints = __m256i;

inline __m256i LaneNumbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
inline __m256i FirstLanes(std::size_t count) {
  const int lanes = count >= kLanes ? static_cast<int>(kLanes) : static_cast<int>(count);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), LaneNumbers());
}

inline Vec Zero() { return _mm256_setzero_ps(); }
inline Vec Fill(float value) { return _mm256_set1_ps(value); }
inline Vec Load(const float* from) { return _mm256_loadu_ps(from); }
inline void Store(float* to, Vec x) { _mm256_storeu_ps(to, x); }
// Loads `count` elements; the others are zero. A count of kLanes or more loads all.
inline Vec LoadFirst(const float* from, std::size_t count) {
  return _mm256_maskload_ps(from, FirstLanes(count));
}
inline void StoreFirst(float* to, Vec x, std::size_t count) {
  _mm256_maskstore_ps(to, FirstLanes(count), x);
}

inline Vec Add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
inline Vec Subtract(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
inline Vec Multiply(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
inline Vec Divide(Vec a, Vec b) { return _mm256_div_ps(a, b); }
inline Vec MultiplyAdd(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
inline Vec MultiplySubtract(Vec a, Vec b, Vec c) { return _mm256_fmsub_ps(a, b, c); }
// Returns a NaN in the second operand.
inline Vec Min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
inline Vec Max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
inline Vec RoundToWhole(Vec x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// x * 2^n for whole n whose power is a normal number.
inline Vec ScaleByPowerOfTwo(Vec x, Vec n) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}

// The elements [first, end) of x, and those of `other` elsewhere.
inline Vec KeepLanes(Vec x, std::ptrdiff_t first, std::ptrdiff_t end, Vec other) {
  const std::size_t below = first <= 0 ? 0 : static_cast<std::size_t>(first);
  const std::size_t above = end <= 0 ? 0 : static_cast<std::size_t>(end);
  const __m256i keep = _mm256_andnot_si256(FirstLanes(below), FirstLanes(above));
  return _mm256_blendv_ps(other, x, _mm256_castsi256_ps(keep));
}

inline Vec Absolute(Vec x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
inline Ints FillInts(std::int32_t value) { return _mm256_set1_epi32(value); }
inline Ints AddInts(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
inline Ints RoundToInts(Vec x) { return _mm256_cvtps_epi32(x); }  // nearest, ties to even
inline Vec ToFloats(Ints x) { return _mm256_cvtepi32_ps(x); }
inline std::int32_t SumOfInts(Ints x) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
  return _mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1);
}
// 16-bit integers in half a vector.
using Shorts = __m128i;
inline Shorts ToShorts(Ints x) {
  return _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}
// Reorders each four values: first, third, second, fourth.
inline void StoreByTwos(void* to, Shorts x) {
  constexpr int kOrder = _MM_SHUFFLE(3, 1, 2, 0);
  const __m128i twos = _mm_shufflehi_epi16(_mm_shufflelo_epi16(x, kOrder), kOrder);
  _mm_storeu_si128(static_cast<__m128i*>(to), twos);
}
// Bytes as 16-bit integers: those at even places, those at odd ones.
inline Ints LoadInts(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline Ints EvenBytes(Ints x) { return _mm256_and_si256(x, _mm256_set1_epi16(0xff)); }
inline Ints OddBytes(Ints x) { return _mm256_srli_epi16(x, 8); }
inline Ints MultiplyPairs(Ints a, Ints b) { return _mm256_madd_epi16(a, b); }
inline Ints AddShorts(Ints a, Ints b) { return _mm256_add_epi16(a, b); }
inline Ints OnesOfShorts() { return _mm256_set1_epi16(1); }
// Bytes without a sign times bytes with one, added in pairs.
inline Ints MultiplyBytePairs(Ints a, Ints b) { return _mm256_maddubs_epi16(a, b); }
inline Ints LowerNibbles(Ints x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
inline Ints UpperNibbles(Ints x) { return LowerNibbles(_mm256_srli_epi16(x, 4)); }
inline Ints WidenBytes(const void* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
}
inline void StoreBytes(void* to, Ints x) {
  const __m128i shorts = ToShorts(x);
  _mm_storel_epi64(static_cast<__m128i*>(to), _mm_packs_epi16(shorts, shorts));
}
// 8 values from float16, which are 0 or normal and not negative. Not every processor with AVX2 need
// have F16C.
inline Vec LoadHalves(const void* from) {
  const __m128i halves = _mm_loadu_si128(static_cast<const __m128i*>(from));
  const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 13);
  return _mm256_mul_ps(_mm256_castsi256_ps(bits), _mm256_set1_ps(0x1p112f));
}

// The lower, or the upper, bfloat16 of each pair as float32.
inline Vec LowerHalves(Ints x) { return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16)); }
inline Vec UpperHalves(Ints x) {
  return _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32(-65536)));
}

inline Vec LoadInt8(const std::int8_t* from) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

inline __m256 LowerPlusUpper(Vec x) { return x; }
inline __m256 LowerMaxUpper(Vec x) { return x; }

// 8 values from and to bfloat16, rounded to nearest even; NaN stays NaN.
inline Vec LoadBf16(const std::uint16_t* from) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline void StoreFirstBf16(std::uint16_t* to, Vec x, std::size_t count) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  alignas(32) std::uint32_t words[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(words), upper);
  const std::size_t lanes = count < kLanes ? count : kLanes;
  for (std::size_t i = 0; i < lanes; ++i) to[i] = static_cast<std::uint16_t>(words[i]);
}

}  // namespace
}  // namespace penstock::shard::cpu
