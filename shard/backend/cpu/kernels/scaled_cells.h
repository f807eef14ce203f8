// Writes and copies int8 K/V. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/kernels/cells.h"

namespace penstock::shard::cpu {
namespace {

// The K, or V, of a position: integers `stride` apart and their scale.
struct ScaledPlace {
  std::int8_t* integers;
  std::byte* scale;
  std::size_t stride;
};
struct ScaledPair {
  ScaledPlace key, value;
};

inline ScaledPair ScaledAt(const HeadCache& cache, const CachePlace& place) {
  std::byte* keys = cache.base + place.block * cache.block_bytes;
  std::byte* values = keys + cache.value_offset;
  return {{reinterpret_cast<std::int8_t*>(keys) + place.offset,
           ScaleAt(keys, cache, cache.key_dim, place.offset), cache.block_size},
          {reinterpret_cast<std::int8_t*>(values) + place.offset * cache.value_dim,
           ScaleAt(values, cache, cache.value_dim, place.offset), 1}};
}

inline void WriteScaled(const ScaledPlace& to, const float* x, std::size_t size) {
  const ScaledRow row(x, size);
  for (std::size_t d = 0; d < size; ++d) to.integers[d * to.stride] = row.Integer(x[d]);
  __builtin_memcpy(to.scale, &row.scale, sizeof row.scale);
}

inline void WriteScaledKv(const HeadCache& cache, std::uint32_t block, std::size_t offset,
                          const float* k, const float* v, bool) {
  const ScaledPair to = ScaledAt(cache, {block, static_cast<std::uint32_t>(offset)});
  WriteScaled(to.key, k, cache.key_dim);
  WriteScaled(to.value, v, cache.value_dim);
}

inline void CopyScaled(const ScaledPlace& from, const ScaledPlace& to, std::size_t size) {
  for (std::size_t d = 0; d < size; ++d) {
    to.integers[d * to.stride] = from.integers[d * from.stride];
  }
  __builtin_memcpy(to.scale, from.scale, sizeof(float));
}

inline void CopyScaledKv(const HeadCache& cache, const CachePlace& from, const CachePlace& to) {
  const ScaledPair source = ScaledAt(cache, from);
  const ScaledPair target = ScaledAt(cache, to);
  CopyScaled(source.key, target.key, cache.key_dim);
  CopyScaled(source.value, target.value, cache.value_dim);
}

}  // namespace
}  // namespace penstock::shard::cpu
