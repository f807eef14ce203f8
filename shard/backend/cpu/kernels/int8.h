// Products of 8-bit integers (kernels.h says how weights and activations are quantised). Internal
// to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

// For instruction sets without a dot product of bytes: bytes at even and at odd places as 16-bit
// integers, whose products are added in pairs without overflow. A row's integers are 16-bit, too,
// in that order.
struct PairsOfInt8 {
  using Activation = std::byte;
  using Weight = std::uint8_t;
  static constexpr std::size_t kPack = kInt8Pack;
  static constexpr std::size_t kLeft = 8;  // bytes of kPack integers of a row
  static constexpr int kParts = 1;
  static constexpr int kSpare = 6;
  struct Right {
    Ints even, odd;
  };
  static Right LoadRight(const Weight* from) {
    const Ints bytes = LoadInts(from);
    return {EvenBytes(bytes), OddBytes(bytes)};
  }
  static Ints Step(Ints sum, const std::byte* left, const Right& right) {
    std::int32_t pairs[2];
    __builtin_memcpy(pairs, left, sizeof pairs);
    sum = AddInts(sum, MultiplyPairs(right.even, FillInts(pairs[0])));
    return AddInts(sum, MultiplyPairs(right.odd, FillInts(pairs[1])));
  }
  static void StoreRow(std::byte* to, Ints values) { StoreByTwos(to, ToShorts(values)); }
};

inline Vec LoadActivations(const float* from) { return Load(from); }
inline Vec LoadActivations(const std::uint16_t* from) { return LoadBf16(from); }

template <class P, class Activation>
void QuantizeGroup(const Activation* in, std::size_t count, std::byte* values, Int8Group& group) {
  Vec largest = Zero();
  Vec not_finite = Zero();
  for (std::size_t i = 0; i < count; i += kLanes) {
    const Vec x = LoadActivations(in + i);
    largest = Max(largest, Absolute(x));
    not_finite = MultiplyAdd(x, Zero(), not_finite);
  }
  const float most = MaxOfLanes(largest);
  constexpr float kNothing = 1e-30f;  // its inverse would be infinite
  const Vec inverse = Fill(most > kNothing ? 127.0f / most : 0.0f);
  Ints sum = FillInts(0);
  for (std::size_t i = 0; i < count; i += kLanes) {
    const Ints rounded = RoundToInts(Multiply(LoadActivations(in + i), inverse));
    sum = AddInts(sum, rounded);
    P::StoreRow(values + i / P::kPack * P::kLeft, rounded);
  }
  group.scale = most / 127.0f + SumOfLanes(not_finite);
  // Of values that are not finite the scale says all; their sum may be beyond an integer.
  group.offset = __builtin_isfinite(group.scale) ? -128 * SumOfInts(sum) : 0;
}

template <class P, class Activation>
void Quantize(const QuantizeArgs& args) {
  const auto* in = static_cast<const Activation*>(args.input);
  for (std::size_t first = 0, group = 0; first < args.size; first += kInt8Group, ++group) {
    const std::size_t left = args.size - first;
    QuantizeGroup<P>(in + first, left < kInt8Group ? left : kInt8Group,
                     args.values + first / P::kPack * P::kLeft, args.groups[group]);
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
