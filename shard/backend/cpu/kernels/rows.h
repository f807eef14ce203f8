// What is done row by row: norms, rotary embedding, writing K and V. Internal to the including
// file.
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

// Adds args.add to args.input, if there is one.
inline void AddResidual(const NormArgs& args) {
  if (args.add == nullptr) return;
  for (std::size_t i = 0; i < args.size; i += kLanes) {
    const std::size_t count = args.size - i;
    const Vec sum = Add(LoadFirst(args.input + i, count), LoadFirst(args.add + i, count));
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
    const Vec weight = LoadFirst(args.weight + i, count);
    StoreActivations(out + i, MultiplyAdd(x, weight, LoadFirst(args.bias + i, count)), count);
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
    StoreActivations(out + i, Multiply(x, LoadFirst(args.weight + i, count)), count);
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

// Dimension d of a position's key is at KeyIndex<P>(cache, d) from here.
template <class P>
typename P::Weight* KeyAt(const HeadCache& cache, const CachePlace& place) {
  std::byte* base = cache.base + place.block * cache.block_bytes;
  return reinterpret_cast<typename P::Weight*>(base) + place.offset * P::kPack;
}
template <class P>
std::size_t KeyIndex(const HeadCache& cache, std::size_t d) {
  return d / P::kPack * cache.block_size * P::kPack + d % P::kPack;
}
// Dimension d of a position's value is at d * kPack from here.
template <class P>
typename P::Weight* ValueAt(const HeadCache& cache, const CachePlace& place) {
  std::byte* base = cache.base + place.block * cache.block_bytes + cache.value_offset;
  return reinterpret_cast<typename P::Weight*>(base) +
         place.offset / P::kPack * cache.head_dim * P::kPack + place.offset % P::kPack;
}

template <class P>
void WriteKey(const HeadCache& cache, const CachePlace& to, const float* k) {
  typename P::Weight* keys = KeyAt<P>(cache, to);
  for (std::size_t d = 0; d < cache.head_dim; ++d) {
    keys[KeyIndex<P>(cache, d)] = RoundedTo(k[d], typename P::Weight());
  }
}

template <class P>
void CopyKey(const HeadCache& cache, const CachePlace& from, const CachePlace& to) {
  const typename P::Weight* source = KeyAt<P>(cache, from);
  typename P::Weight* keys = KeyAt<P>(cache, to);
  for (std::size_t d = 0; d < cache.head_dim; ++d) {
    keys[KeyIndex<P>(cache, d)] = source[KeyIndex<P>(cache, d)];
  }
}

template <class P>
void CopyKv(const HeadCache& cache, const CachePlace& from, const CachePlace& to) {
  CopyKey<P>(cache, from, to);
  const typename P::Weight* source = ValueAt<P>(cache, from);
  typename P::Weight* values = ValueAt<P>(cache, to);
  const bool clear = P::kPack > 1 && to.offset % P::kPack == 0;
  for (std::size_t d = 0; d < cache.head_dim; ++d) {
    values[d * P::kPack] = source[d * P::kPack];
    if (clear) values[d * P::kPack + 1] = typename P::Weight();
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

template <class P>
void WriteKv(const HeadCache& cache, std::uint32_t block, std::size_t offset, const float* k,
             const float* v, bool clear_partner) {
  using Weight = typename P::Weight;
  constexpr std::size_t kPack = P::kPack;
  const CachePlace place{block, static_cast<std::uint32_t>(offset)};
  Weight* keys = KeyAt<P>(cache, place);
  Weight* values = ValueAt<P>(cache, place);
  for (std::size_t d = 0; d < cache.head_dim; ++d) {
    keys[KeyIndex<P>(cache, d)] = RoundedTo(k[d], Weight());
    values[d * kPack] = RoundedTo(v[d], Weight());
  }
  if (kPack == 1 || !clear_partner || offset % kPack != 0) return;
  // Multiplied by a probability of zero; what another sequence left here could be a NaN.
  for (std::size_t d = 0; d < cache.head_dim; ++d) values[d * kPack + 1] = Weight();
}

}  // namespace
}  // namespace penstock::shard::cpu
