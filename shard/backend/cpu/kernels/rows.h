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

template <class Out>
void RmsNorm(const NormArgs& args) {
  if (args.add != nullptr) {
    for (std::size_t i = 0; i < args.size; i += kLanes) {
      const std::size_t count = args.size - i;
      const Vec sum = Add(LoadFirst(args.input + i, count), LoadFirst(args.add + i, count));
      StoreFirst(args.input + i, sum, count);
    }
  }
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

template <class P>
void WriteKv(const HeadCache& cache, std::uint32_t block, std::size_t offset, const float* k,
             const float* v, bool clear_partner) {
  using Weight = typename P::Weight;
  constexpr std::size_t kPack = P::kPack;
  std::byte* base = cache.base + block * cache.block_bytes;
  Weight* keys = reinterpret_cast<Weight*>(base) + offset * kPack;
  Weight* values = reinterpret_cast<Weight*>(base + cache.value_offset) +
                   offset / kPack * cache.head_dim * kPack + offset % kPack;
  for (std::size_t d = 0; d < cache.head_dim; ++d) {
    keys[d / kPack * cache.block_size * kPack + d % kPack] = RoundedTo(k[d], Weight());
    values[d * kPack] = RoundedTo(v[d], Weight());
  }
  if (kPack == 1 || !clear_partner || offset % kPack != 0) return;
  // Multiplied by a probability of zero; what another sequence left here could be a NaN.
  for (std::size_t d = 0; d < cache.head_dim; ++d) values[d * kPack + 1] = Weight();
}

}  // namespace
}  // namespace penstock::shard::cpu
