// Quantises rows of activations for the product P (formats.h). Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/formats/format_kernels.h"
#include "shard/backend/cpu/formats/kernels/gemm_tile.h"

namespace penstock::shard::cpu {
namespace {

inline Vec LoadActivations(const float* from) { return Load(from); }
inline Vec LoadActivations(const std::uint16_t* from) { return LoadBf16(from); }

// Zeros after `count` elements: a wider layer may have written there.
template <class Activation>
Vec LoadActivations(const Activation* from, std::size_t count) {
  const Vec x = LoadActivations(from);
  if (count >= kLanes) return x;
  return KeepLanes(x, 0, static_cast<std::ptrdiff_t>(count), Zero());
}

template <class P, class Activation>
void QuantizeGroup(const Activation* in, std::size_t count, std::byte* values,
                   IntegerGroup& group) {
  Vec largest = Zero();
  Vec not_finite = Zero();
  for (std::size_t i = 0; i < count; i += kLanes) {
    const Vec x = LoadActivations(in + i, count - i);
    largest = Max(largest, Absolute(x));
    not_finite = MultiplyAdd(x, Zero(), not_finite);
  }
  const float most = MaxOfLanes(largest);
  constexpr float kNothing = 1e-30f;  // its inverse would be infinite
  const Vec inverse = Fill(most > kNothing ? P::kLargest / most : 0.0f);
  Ints sum = FillInts(0);
  for (std::size_t i = 0; i < count; i += kLanes) {
    const Ints rounded = RoundToInts(Multiply(LoadActivations(in + i, count - i), inverse));
    sum = AddInts(sum, rounded);
    P::StoreRow(values + i / P::kPack * P::kLeft, rounded);
  }
  group.scale = most / P::kLargest + SumOfLanes(not_finite);
  // If a value is not finite the scale is NaN, and the sum may not fit an integer.
  group.offset = __builtin_isfinite(group.scale) ? (Nibbles<P> ? -1 : -128) * SumOfInts(sum) : 0;
}

template <class P, class Activation>
void Quantize(const QuantizeArgs& args) {
  const auto* in = static_cast<const Activation*>(args.input);
  for (std::size_t first = 0, group = 0; first < args.size; first += kRowGroup<P>, ++group) {
    const std::size_t left = args.size - first;
    QuantizeGroup<P>(in + first, left < kRowGroup<P> ? left : kRowGroup<P>,
                     args.values + first / P::kPack * P::kLeft, args.groups[group]);
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
