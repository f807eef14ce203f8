// Sizes of the paged KV caches of one rank. Each cache has one K and one V array,
// [blocks, block_size, kv_heads, dim], with the blocks of its KV group. For contrastive search
// there is the hidden-state plane, [blocks, block_size, hidden]: the normalised last hidden state
// of each position. It belongs to group 0. Block tables belong to the executor's slots.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/dtype.h"
#include "shard/cache/paged/cache_shape.h"
#include "shard/cache/paged/kv_blocks.h"
#include "shard/cache/paged/kv_type.h"

namespace penstock::shard {

struct PagedLayout {
  std::vector<CacheShape> caches;
  std::uint32_t block_size = 16;  // tokens
  DType dtype = DType::kFloat32;  // of the model
  std::uint32_t hidden = 0;       // width of the hidden-state plane; 0 = there is none
  KvType kv_type = KvType::kAuto;

  // K, and V, of one head.
  std::uint64_t KeyBytes(const CacheShape& cache) const {
    return KvHeadBytes(kv_type, dtype, cache.key_dim);
  }
  std::uint64_t ValueBytes(const CacheShape& cache) const {
    return cache.values_in_keys ? 0 : KvHeadBytes(kv_type, dtype, cache.value_dim);
  }
  // K and V of all heads of one cache.
  std::uint64_t CacheBytesPerToken(const CacheShape& cache) const {
    return cache.kv_heads * (KeyBytes(cache) + ValueBytes(cache));
  }
  std::uint64_t HiddenBytesPerToken() const { return std::uint64_t{hidden} * DTypeBytes(dtype); }
  std::uint32_t GroupCount() const {
    std::uint32_t most = 0;
    for (const CacheShape& cache : caches) most = std::max(most, cache.kv_group);
    return most + 1;
  }
  // Sum over the layers of a group.
  std::uint64_t GroupBytesPerToken(std::uint32_t group) const {
    std::uint64_t bytes = group == 0 ? HiddenBytesPerToken() : 0;
    for (const CacheShape& cache : caches) {
      if (cache.kv_group == group) bytes += CacheBytesPerToken(cache);
    }
    return bytes;
  }
  std::uint64_t GroupBytesPerBlock(std::uint32_t group) const {
    return GroupBytesPerToken(group) * block_size;
  }
  // Sum over all layers.
  std::uint64_t BytesPerToken() const {
    std::uint64_t bytes = HiddenBytesPerToken();
    for (const CacheShape& cache : caches) bytes += CacheBytesPerToken(cache);
    return bytes;
  }
  std::uint64_t BytesPerBlock() const { return BytesPerToken() * block_size; }
  std::uint64_t Bytes(const KvBlocks& blocks) const {
    std::uint64_t bytes = 0;
    for (std::uint32_t group = 0; group < GroupCount(); ++group) {
      bytes += GroupBytesPerBlock(group) * blocks[group];
    }
    return bytes;
  }

  // Blocks of every group for `bytes` of cache memory.
  std::uint32_t BlocksIn(std::uint64_t bytes) const {
    const std::uint64_t blocks = bytes / BytesPerBlock();
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(blocks < kMax ? blocks : kMax);
  }

  // Blocks that hold `tokens` positions.
  std::uint32_t BlocksFor(std::uint32_t tokens) const {
    return tokens / block_size + (tokens % block_size != 0 ? 1 : 0);
  }
};

}  // namespace penstock::shard
