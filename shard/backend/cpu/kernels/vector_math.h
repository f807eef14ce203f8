// Functions over the vectors of whichever simd_*.h was included before; internal to that file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::shard::cpu {
namespace {

// Sums and maxima of all lanes, always in the same order.
inline float SumOfLanes(Vec x) {
  const __m256 eight = LowerPlusUpper(x);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float MaxOfLanes(Vec x) {
  const __m256 eight = LowerMaxUpper(x);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// e^x within two units in the last place for |x| <= 87; beyond, the value at the border. Range
// reduction by ln 2 in two parts and a polynomial of degree 6 (Cephes, expf).
inline Vec Exp(Vec x) {
  x = Min(Fill(87.0f), Max(Fill(-87.0f), x));
  const Vec n = RoundToWhole(Multiply(x, Fill(1.44269504088896341f)));
  Vec r = MultiplyAdd(n, Fill(-0.693359375f), x);
  r = MultiplyAdd(n, Fill(2.12194440e-4f), r);
  Vec p = Fill(1.9875691500e-4f);
  p = MultiplyAdd(p, r, Fill(1.3981999507e-3f));
  p = MultiplyAdd(p, r, Fill(8.3334519073e-3f));
  p = MultiplyAdd(p, r, Fill(4.1665795894e-2f));
  p = MultiplyAdd(p, r, Fill(1.6666665459e-1f));
  p = MultiplyAdd(p, r, Fill(5.0000001201e-1f));
  p = MultiplyAdd(p, Multiply(r, r), Add(r, Fill(1.0f)));
  return ScaleByPowerOfTwo(p, n);
}

// e^x for x <= 0, as exact relative to the result while x is above -10 and to 1e-5 beyond; below
// -87, the value there. 2 to the power of the whole part, and a polynomial of degree 6 for the rest
// (Cephes, exp2f). NaN stays.
inline Vec ExpOfNegative(Vec x) {
  x = Max(Fill(-87.0f), x);
  const Vec n = RoundToWhole(Multiply(x, Fill(1.44269504088896341f)));
  const Vec r = MultiplySubtract(x, Fill(1.44269504088896341f), n);
  Vec p = Fill(1.535336188319500e-4f);
  p = MultiplyAdd(p, r, Fill(1.339887440266574e-3f));
  p = MultiplyAdd(p, r, Fill(9.618437357674640e-3f));
  p = MultiplyAdd(p, r, Fill(5.550332471162809e-2f));
  p = MultiplyAdd(p, r, Fill(2.402264791363012e-1f));
  p = MultiplyAdd(p, r, Fill(6.931472028550421e-1f));
  return ScaleByPowerOfTwo(MultiplyAdd(p, r, Fill(1.0f)), n);
}

inline Vec Silu(Vec x) { return Divide(x, Add(Fill(1.0f), Exp(Subtract(Zero(), x)))); }

// x * Phi(x) by Abramowitz and Stegun 7.1.26: the error of Phi is at most 2e-7.
inline Vec Gelu(Vec x) {
  const Vec z = Multiply(Absolute(x), Fill(0.70710678118654752f));
  const Vec t = Divide(Fill(1.0f), MultiplyAdd(z, Fill(0.3275911f), Fill(1.0f)));
  Vec p = Fill(1.061405429f);
  p = MultiplyAdd(p, t, Fill(-1.453152027f));
  p = MultiplyAdd(p, t, Fill(1.421413741f));
  p = MultiplyAdd(p, t, Fill(-0.284496736f));
  p = MultiplyAdd(p, t, Fill(0.254829592f));
  // Phi(-|x|), and the larger one of 0 and x, whose sum with |x| times the former is the result.
  const Vec tail = Multiply(Multiply(Multiply(p, t), Fill(0.5f)),
                            ExpOfNegative(Subtract(Zero(), Multiply(z, z))));
  return Subtract(Max(Zero(), x), Multiply(Absolute(x), tail));
}

// x * sigmoid(2 u) = x * (1 + tanh(u)) / 2 with u = sqrt(2 / pi) * (x + 0.044715 x^3).
inline Vec GeluTanh(Vec x) {
  const Vec cube = MultiplyAdd(Multiply(x, x), Fill(0.044715f), Fill(1.0f));
  const Vec u = Multiply(Multiply(x, cube), Fill(-1.5957691216057308f));
  return Divide(x, Add(Fill(1.0f), Exp(u)));
}

// cap * tanh(x / cap), by 1 - 2 / (e^2u + 1).
inline Vec SoftCap(Vec x, Vec cap) {
  const Vec e = Exp(Divide(Add(x, x), cap));
  return Multiply(cap, Subtract(Fill(1.0f), Divide(Fill(2.0f), Add(e, Fill(1.0f)))));
}

inline void StoreActivations(float* to, Vec x, std::size_t count) { StoreFirst(to, x, count); }
inline void StoreActivations(std::uint16_t* to, Vec x, std::size_t count) {
  StoreFirstBf16(to, x, count);
}

inline float RoundedTo(float x, float) { return x; }
// As StoreFirstBf16, for one value.
inline std::uint16_t RoundedTo(float x, std::uint16_t) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  if (x != x) return static_cast<std::uint16_t>((bits | 0x400000u) >> 16);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace
}  // namespace penstock::shard::cpu
