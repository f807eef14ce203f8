// Norms and RoPE of one row. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

// Four sums side by side, joined in a fixed order.
inline float SumOfSquares(const float* x, std::size_t size) {
  Vec sums[4] = {Zero(), Zero(), Zero(), Zero()};
  for (std::size_t i = 0; i < size; i += kLanes) {
    const Vec value = LoadFirst(x + i, size - i);
    Vec& sum = sums[i / kLanes % 4];
    sum = MultiplyAdd(value, value, sum);
  }
  return SumOfLanes(Add(Add(sums[0], sums[1]), Add(sums[2], sums[3])));
}

// Adds args.add * args.add_scale to args.input, if there is one.
inline void AddResidual(const NormArgs& args) {
  if (args.add == nullptr) return;
  for (std::size_t i = 0; i < args.size; i += kLanes) {
    const std::size_t count = args.size - i;
    const Vec sum = MultiplyAdd(LoadFirst(args.add + i, count), Fill(args.add_scale),
                                LoadFirst(args.input + i, count));
    StoreFirst(args.input + i, sum, count);
  }
}

// Four sums side by side, joined in a fixed order.
inline float SumOf(const float* x, std::size_t size) {
  Vec sums[4] = {Zero(), Zero(), Zero(), Zero()};
  for (std::size_t i = 0; i < size; i += kLanes) {
    Vec& sum = sums[i / kLanes % 4];
    sum = Add(sum, LoadFirst(x + i, size - i));
  }
  return SumOfLanes(Add(Add(sums[0], sums[1]), Add(sums[2], sums[3])));
}

// The sum of (x - mean)^2, with the same shape.
inline float SumOfDeviations(const float* x, std::size_t size, float mean) {
  Vec sums[4] = {Zero(), Zero(), Zero(), Zero()};
  for (std::size_t i = 0; i < size; i += kLanes) {
    const auto count = static_cast<std::ptrdiff_t>(size - i);
    const Vec all = Subtract(LoadFirst(x + i, size - i), Fill(mean));
    const Vec value = KeepLanes(all, 0, count, Zero());
    Vec& sum = sums[i / kLanes % 4];
    sum = MultiplyAdd(value, value, sum);
  }
  return SumOfLanes(Add(Add(sums[0], sums[1]), Add(sums[2], sums[3])));
}

template <class Out>
void LayerNorm(const NormArgs& args) {
  AddResidual(args);
  const auto size = static_cast<float>(args.size);
  const float mean = SumOf(args.input, args.size) / size;
  const float variance = SumOfDeviations(args.input, args.size, mean) / size;
  const Vec scale = Fill(1.0f / __builtin_sqrtf(variance + args.eps));
  Out* out = static_cast<Out*>(args.out);
  for (std::size_t i = 0; i < args.size; i += kLanes) {
    const std::size_t count = args.size - i;
    const Vec x = Multiply(Subtract(LoadFirst(args.input + i, count), Fill(mean)), scale);
    const Vec weight = args.weight == nullptr ? Fill(1.0f) : LoadFirst(args.weight + i, count);
    const Vec bias = args.bias == nullptr ? Zero() : LoadFirst(args.bias + i, count);
    StoreActivations(out + i, MultiplyAdd(x, weight, bias), count);
  }
}

// The input as it is.
template <class Out>
void CopyRow(const NormArgs& args) {
  AddResidual(args);
  Out* out = static_cast<Out*>(args.out);
  for (std::size_t i = 0; i < args.size; i += kLanes) {
    StoreActivations(out + i, LoadFirst(args.input + i, args.size - i), args.size - i);
  }
}

template <class Out>
void RmsNorm(const NormArgs& args) {
  AddResidual(args);
  const float mean = SumOfSquares(args.input, args.size) / static_cast<float>(args.size);
  const Vec scale = Fill(1.0f / __builtin_sqrtf(mean + args.eps));
  Out* out = static_cast<Out*>(args.out);
  for (std::size_t i = 0; i < args.size; i += kLanes) {
    const std::size_t count = args.size - i;
    const Vec x = Multiply(LoadFirst(args.input + i, count), scale);
    const Vec weight = args.weight == nullptr ? Fill(1.0f) : LoadFirst(args.weight + i, count);
    StoreActivations(out + i, Multiply(x, weight), count);
  }
}

inline void Rope(float* head, const float* cosine, const float* sine, std::size_t half) {
  for (std::size_t i = 0; i < half; i += kLanes) {
    const std::size_t count = half - i;
    const Vec a = LoadFirst(head + i, count);
    const Vec b = LoadFirst(head + half + i, count);
    const Vec c = LoadFirst(cosine + i, count);
    const Vec s = LoadFirst(sine + i, count);
    StoreFirst(head + i, Subtract(Multiply(a, c), Multiply(b, s)), count);
    StoreFirst(head + half + i, MultiplyAdd(b, c, Multiply(a, s)), count);
  }
}

inline Vec LoadActivations(const float* from) { return Load(from); }
inline Vec LoadActivations(const std::uint16_t* from) { return LoadBf16(from); }

// Rows are padded to whole vectors with zeros, which stay zeros.
template <class Activation>
void ScaleActivations(void* row, std::size_t size, float scale) {
  auto* x = static_cast<Activation*>(row);
  for (std::size_t i = 0; i < size; i += kLanes) {
    StoreActivations(x + i, Multiply(LoadActivations(x + i), Fill(scale)), kLanes);
  }
}

template <class Activation>
void MultiplyActivations(void* row, const float* by, std::size_t size) {
  auto* x = static_cast<Activation*>(row);
  for (std::size_t i = 0; i < size; i += kLanes) {
    StoreActivations(x + i, Multiply(LoadActivations(x + i), LoadFirst(by + i, size - i)), kLanes);
  }
}

inline void ScaleLogits(float* row, std::size_t size, float scale, float softcap) {
  for (std::size_t i = 0; i < size; i += kLanes) {
    Vec x = Multiply(LoadFirst(row + i, size - i), Fill(scale));
    if (softcap != 0.0f) x = SoftCap(x, Fill(softcap));
    StoreFirst(row + i, x, size - i);
  }
}

template <class P>
void UnitVector(float* row, std::size_t size, void* out) {
  const float sum = SumOfSquares(row, size);
  const Vec length = Fill(sum > 0 ? __builtin_sqrtf(sum) : 1.0f);
  for (std::size_t i = 0; i < size; i += kLanes) {
    const Vec x = Divide(LoadFirst(row + i, size - i), length);
    StoreFirst(row + i, x, size - i);
    if (out == nullptr) continue;
    StoreActivations(static_cast<typename P::Activation*>(out) + i, x, size - i);
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
