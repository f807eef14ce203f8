// How queries are multiplied with K, and probabilities with V, for each type of K/V. Each type has
// the operations of a product (products.h). bfloat16 values lie in pairs even where they are
// widened, so one load gives two vectors. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

// bfloat16 K/V widened to float32, which is exact. Queries and probabilities are float32.
struct WidenedCells {
  using Activation = float;
  using Weight = std::uint16_t;
  static constexpr std::size_t kPack = 2;
  static constexpr std::size_t kLeft = kPack;
  struct Right {
    Vec first, second;
  };
  static Right LoadRight(const std::uint16_t* from) {
    const Ints pairs = LoadInts(from);
    return {LowerHalves(pairs), UpperHalves(pairs)};
  }
  static Vec Step(Vec sum, const float* left, const Right& right) {
    sum = MultiplyAdd(Fill(left[0]), right.first, sum);
    return MultiplyAdd(Fill(left[1]), right.second, sum);
  }
};

// int8 K/V widened to float32 without their scales. Scores are multiplied by the scales of K,
// probabilities by those of V.
struct ScaledCells {
  using Activation = float;
  using Weight = std::int8_t;
  using Right = Vec;
  static constexpr std::size_t kPack = 1;
  static constexpr std::size_t kLeft = kPack;
  static Right LoadRight(const std::int8_t* from) { return LoadInt8(from); }
  static Vec Step(Vec sum, const float* left, Right right) {
    return MultiplyAdd(Fill(*left), right, sum);
  }
};

template <class C>
constexpr bool kScaled = sizeof(typename C::Weight) == 1;

// The largest magnitude; infinite where a value is infinite or not a number.
inline float LargestOf(const float* x, std::size_t size) {
  constexpr float kInfinity = __builtin_huge_valf();
  float largest = 0.0f;
  for (std::size_t i = 0; i < size; ++i) {
    const float magnitude = __builtin_fabsf(x[i]);
    if (!(magnitude < kInfinity)) return kInfinity;
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

// Quantises the K or V of a position to int8: to nearest, ties to even.
struct ScaledRow {
  explicit ScaledRow(const float* x, std::size_t size) {
    const float largest = LargestOf(x, size);
    if (largest == __builtin_huge_valf()) {
      scale = __builtin_nanf("");
    } else if (largest > 0) {
      scale = largest / 127.0f;
      inverse = 127.0f / largest;
    }
  }
  std::int8_t Integer(float x) const {
    if (!(inverse > 0 && inverse < __builtin_huge_valf())) return 0;
    return static_cast<std::int8_t>(__builtin_rintf(x * inverse));
  }
  float scale = 0;
  float inverse = 0;
};

// The scale of a position after the K, or V, of a block, with `dim` integers for each position.
inline std::byte* ScaleAt(std::byte* cells, const HeadCache& cache, std::size_t dim,
                          std::size_t offset) {
  return cells + cache.block_size * dim + offset * sizeof(float);
}

}  // namespace
}  // namespace penstock::shard::cpu
