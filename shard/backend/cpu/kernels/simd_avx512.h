// 16 lanes of float32. Included once by each file that is compiled for AVX-512; everything is
// internal to that file, so that such code does not get into files for other processors.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kPanelVectors = 2;
constexpr int kRegisters = 32;
using Vec = __m512;
using Ints = __m512i;

inline __mmask16 FirstLanes(std::size_t count) {
  return count >= kLanes ? __mmask16{0xffff} : static_cast<__mmask16>((1u << count) - 1u);
}

inline Vec Zero() { return _mm512_setzero_ps(); }
inline Vec Fill(float value) { return _mm512_set1_ps(value); }
inline Vec Load(const float* from) { return _mm512_loadu_ps(from); }
inline void Store(float* to, Vec x) { _mm512_storeu_ps(to, x); }
// Loads `count` elements; the others are zero. A count of kLanes or more loads all.
inline Vec LoadFirst(const float* from, std::size_t count) {
  return _mm512_maskz_loadu_ps(FirstLanes(count), from);
}
inline void StoreFirst(float* to, Vec x, std::size_t count) {
  _mm512_mask_storeu_ps(to, FirstLanes(count), x);
}

inline Vec Add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
inline Vec Subtract(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
inline Vec Multiply(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
inline Vec Divide(Vec a, Vec b) { return _mm512_div_ps(a, b); }
inline Vec MultiplyAdd(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
inline Vec MultiplySubtract(Vec a, Vec b, Vec c) { return _mm512_fmsub_ps(a, b, c); }
// Returns a NaN in the second operand.
inline Vec Min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
inline Vec Max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
inline Vec RoundToWhole(Vec x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// x * 2^n for whole n whose power is a normal number.
inline Vec ScaleByPowerOfTwo(Vec x, Vec n) { return _mm512_scalef_ps(x, n); }

// The elements [first, end) of x, and those of `other` elsewhere.
inline Vec KeepLanes(Vec x, std::ptrdiff_t first, std::ptrdiff_t end, Vec other) {
  const std::size_t below = first <= 0 ? 0 : static_cast<std::size_t>(first);
  const std::size_t above = end <= 0 ? 0 : static_cast<std::size_t>(end);
  const auto keep = static_cast<__mmask16>(FirstLanes(above) & ~FirstLanes(below));
  return _mm512_mask_blend_ps(keep, other, x);
}

inline Vec Absolute(Vec x) { return _mm512_abs_ps(x); }
inline Ints FillInts(std::int32_t value) { return _mm512_set1_epi32(value); }
inline Ints AddInts(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
inline Ints RoundToInts(Vec x) { return _mm512_cvtps_epi32(x); }  // nearest, ties to even
inline Vec ToFloats(Ints x) { return _mm512_cvtepi32_ps(x); }
inline std::int32_t SumOfInts(Ints x) { return _mm512_reduce_add_epi32(x); }
// 16-bit integers in half a vector.
using Shorts = __m256i;
inline Shorts ToShorts(Ints x) { return _mm512_cvtepi32_epi16(x); }
// Reorders each four values: first, third, second, fourth.
inline void StoreByTwos(void* to, Shorts x) {
  constexpr int kOrder = _MM_SHUFFLE(3, 1, 2, 0);
  const __m256i twos = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(x, kOrder), kOrder);
  _mm256_storeu_si256(static_cast<__m256i*>(to), twos);
}
// Bytes as 16-bit integers: those at even places, those at odd ones.
inline Ints LoadInts(const void* from) { return _mm512_loadu_si512(from); }
// Four bytes as an operand of an instruction.
using FourBytes [[gnu::may_alias]] = std::int32_t;
inline const FourBytes& IntegersAt(const std::byte* from) {
  return *reinterpret_cast<const FourBytes*>(from);
}
inline Ints EvenBytes(Ints x) { return _mm512_and_si512(x, _mm512_set1_epi16(0xff)); }
inline Ints OddBytes(Ints x) { return _mm512_srli_epi16(x, 8); }
inline Ints MultiplyPairs(Ints a, Ints b) { return _mm512_madd_epi16(a, b); }
inline Ints AddShorts(Ints a, Ints b) { return _mm512_add_epi16(a, b); }
inline Ints OnesOfShorts() { return _mm512_set1_epi16(1); }
// Bytes without a sign times bytes with one, added in pairs.
inline Ints MultiplyBytePairs(Ints a, Ints b) { return _mm512_maddubs_epi16(a, b); }
inline Ints LowerNibbles(Ints x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
inline Ints UpperNibbles(Ints x) { return LowerNibbles(_mm512_srli_epi16(x, 4)); }
inline Ints WidenBytes(const void* from) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}
inline void StoreBytes(void* to, Ints x) {
  _mm_storeu_si128(static_cast<__m128i*>(to), _mm512_cvtepi32_epi8(x));
}
// 16 values from float16.
inline Vec LoadHalves(const void* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
}

// The lower, or the upper, bfloat16 of each pair as float32.
inline Vec LowerHalves(Ints x) { return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)); }
inline Vec UpperHalves(Ints x) {
  return _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(-65536)));
}

inline Vec LoadInt8(const std::int8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

inline __m256 LowerPlusUpper(Vec x) {
  return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
}
inline __m256 LowerMaxUpper(Vec x) {
  return _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
}

// 16 values from and to bfloat16, rounded to nearest even; NaN stays NaN.
inline Vec LoadBf16(const std::uint16_t* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
inline void StoreFirstBf16(std::uint16_t* to, Vec x, std::size_t count) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i safe = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  const __m256i upper = _mm512_cvtepi32_epi16(_mm512_srli_epi32(safe, 16));
  _mm256_mask_storeu_epi16(to, FirstLanes(count), upper);
}

}  // namespace
}  // namespace penstock::shard::cpu
