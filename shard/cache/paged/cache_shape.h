// What a K/V cache holds for one position.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::shard {

struct CacheShape {
  std::uint32_t kv_heads = 0;  // of this rank
  std::uint32_t key_dim = 0;   // of a head
  std::uint32_t value_dim = 0;
  // V is the first value_dim dimensions of K, and only K is stored.
  bool values_in_keys = false;
  std::uint32_t kv_group = 0;

  bool operator==(const CacheShape&) const = default;
};

// Caches of layers that all have the same heads, with values as wide as keys.
inline std::vector<CacheShape> UniformCaches(std::uint32_t layers, std::uint32_t kv_heads,
                                             std::uint32_t head_dim) {
  return std::vector<CacheShape>(layers, CacheShape{kv_heads, head_dim, head_dim});
}

}  // namespace penstock::shard
