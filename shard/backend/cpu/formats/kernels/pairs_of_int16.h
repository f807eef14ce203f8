// The product of int16 weights on processors with AVX512_VNNI, and how they are made from bfloat16
// (formats.h). Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/formats/format_kernels.h"
#include "shard/backend/cpu/kernels/step_row.h"

namespace penstock::shard::cpu {
namespace {

// One instruction adds two products of 16-bit integers to an integer sum.
struct PairsOfInt16 {
  using Activation = std::byte;
  using Weight = std::int16_t;
  static constexpr std::size_t kPack = kInt16Pack;
  static constexpr float kLargest = kInt16Largest;
  static constexpr std::size_t kLeft = 4;  // bytes of a pair of a row
  static constexpr int kSpare = 2;
  static constexpr int kUnrolled = 4;
  static constexpr bool kGroupScales = true;
  PENSTOCK_STEP_ROW("vpdpwssd")
  static void StoreRow(std::byte* to, Ints values) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), ToShorts(values));
  }
};

constexpr std::size_t kGroupPairs = kIntegerGroup / kInt16Pack;

// The factor from weights to integers: the largest power of two that keeps the sum of a group below
// kInt16Sum and each integer within 16 bits. The margin covers the rounding of each integer (1/2)
// and of the sum (far below 1/2000). The sum is computed as a mean, which cannot overflow. NaN if a
// weight is not finite.
inline float FactorOf(const Vec (&weights)[kIntegerGroup / kLanes]) {
  constexpr float kMean = (kInt16Sum - kIntegerGroup / 2 - 100) / float{kIntegerGroup};
  constexpr float kShare = 1.0f / kIntegerGroup;
  Vec largest = Zero();
  Vec mean = Zero();
  Vec not_finite = Zero();
#pragma GCC unroll 8
  for (const Vec& x : weights) {
    largest = Max(largest, Absolute(x));
    mean = MultiplyAdd(Absolute(x), Fill(kShare), mean);
    not_finite = MultiplyAdd(x, Zero(), not_finite);
  }
  const float most = MaxOfLanes(largest);
  constexpr float kLeast = 0x1p-100f;  // smaller weights have the factor of this one
  const float by_sum = kMean / __builtin_fmaxf(SumOfLanes(mean), kLeast);
  const float by_size = 32767.0f / __builtin_fmaxf(most, kLeast);
  const float factor = by_sum < by_size ? by_sum : by_size;
  std::uint32_t bits;
  __builtin_memcpy(&bits, &factor, sizeof bits);
  bits &= 0xff800000u;
  float power;
  __builtin_memcpy(&power, &bits, sizeof power);
  return power + SumOfLanes(not_finite);
}

// Packs one column of a group: its integers side by side. Returns their scale.
inline float PackGroup(const std::byte* row, std::size_t count, std::int16_t* out) {
  constexpr std::size_t kVectors = kIntegerGroup / kLanes;
  Vec weights[kVectors];
  alignas(64) std::uint16_t bits[kIntegerGroup] = {};
  if (count > 0) __builtin_memcpy(bits, row, count * sizeof bits[0]);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kVectors; ++i) weights[i] = LoadBf16(bits + i * kLanes);
  const float factor = FactorOf(weights);
  const Vec factors = Fill(factor);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kVectors; ++i) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(out + i * kLanes),
                       ToShorts(RoundToInts(Multiply(weights[i], factors))));
  }
  return 1.0f / factor;
}

inline void PackInt16(const PackPanelArgs& args) {
  alignas(64) std::int16_t columns[kPanel][kIntegerGroup];
  alignas(64) float scales[kPanel];
  const Ints lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const Ints places = _mm512_mullo_epi32(lanes, FillInts(kGroupPairs));
  std::byte* out = args.out;
  for (std::size_t first = 0; first < args.inner; first += kIntegerGroup) {
    const std::size_t left = args.inner - first;
    const std::size_t count = left < kIntegerGroup ? left : kIntegerGroup;
    for (std::size_t c = 0; c < kPanel; ++c) {
      const std::byte* row = args.rows[c];
      scales[c] = PackGroup(row == nullptr ? nullptr : row + first * sizeof(std::uint16_t),
                            row == nullptr ? 0 : count, columns[c]);
    }
    __builtin_memcpy(out, scales, sizeof scales);
    out += sizeof scales;
    for (std::size_t pair = 0; pair < (count + 1) / 2; ++pair) {
      for (std::size_t v = 0; v < kPanelVectors; ++v, out += kLine) {
        const auto* from = reinterpret_cast<const std::byte*>(columns[v * kLanes]);
        _mm512_storeu_si512(out, _mm512_i32gather_epi32(places, from + pair * 4, 4));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
