// Writing and copying K and V of one position. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

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
         place.offset / P::kPack * cache.value_dim * P::kPack + place.offset % P::kPack;
}

template <class P>
void WriteKey(const HeadCache& cache, const CachePlace& to, const float* k) {
  typename P::Weight* keys = KeyAt<P>(cache, to);
  for (std::size_t d = 0; d < cache.key_dim; ++d) {
    keys[KeyIndex<P>(cache, d)] = RoundedTo(k[d], typename P::Weight());
  }
}

template <class P>
void CopyKey(const HeadCache& cache, const CachePlace& from, const CachePlace& to) {
  const typename P::Weight* source = KeyAt<P>(cache, from);
  typename P::Weight* keys = KeyAt<P>(cache, to);
  for (std::size_t d = 0; d < cache.key_dim; ++d) {
    keys[KeyIndex<P>(cache, d)] = source[KeyIndex<P>(cache, d)];
  }
}

template <class P>
void CopyKv(const HeadCache& cache, const CachePlace& from, const CachePlace& to) {
  CopyKey<P>(cache, from, to);
  const typename P::Weight* source = ValueAt<P>(cache, from);
  typename P::Weight* values = ValueAt<P>(cache, to);
  const bool clear = P::kPack > 1 && to.offset % P::kPack == 0;
  for (std::size_t d = 0; d < cache.value_dim; ++d) {
    values[d * P::kPack] = source[d * P::kPack];
    if (clear) values[d * P::kPack + 1] = typename P::Weight();
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
  for (std::size_t d = 0; d < cache.key_dim; ++d) {
    keys[KeyIndex<P>(cache, d)] = RoundedTo(k[d], Weight());
  }
  for (std::size_t d = 0; d < cache.value_dim; ++d) values[d * kPack] = RoundedTo(v[d], Weight());
  if (kPack == 1 || !clear_partner || offset % kPack != 0) return;
  // Multiplied by a probability of zero; what another sequence left here could be a NaN.
  for (std::size_t d = 0; d < cache.value_dim; ++d) values[d * kPack + 1] = Weight();
}

}  // namespace
}  // namespace penstock::shard::cpu
