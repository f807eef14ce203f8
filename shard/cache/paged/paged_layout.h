// Sizes of the paged KV cache of one rank. Each layer has one K and one V array,
// [blocks, block_size, kv_heads, head_dim]. For contrastive search there is the hidden-state plane,
// [blocks, block_size, hidden]: the normalised last hidden state of each position. Block tables
// belong to the executor's slots.
#pragma once

#include <cstdint>
#include <limits>

#include "common/dtype.h"
#include "shard/cache/paged/kv_type.h"

namespace penstock::shard {

struct PagedLayout {
  std::uint32_t layers = 0;
  std::uint32_t block_size = 16;  // tokens
  std::uint32_t kv_heads = 0;     // of this rank
  std::uint32_t head_dim = 0;
  DType dtype = DType::kFloat32;  // of the model
  std::uint32_t hidden = 0;       // width of the hidden-state plane; 0 = there is none
  KvType kv_type = KvType::kAuto;

  std::uint64_t LayerBytesPerToken() const {  // K and V of one layer
    return std::uint64_t{2} * kv_heads * KvHeadBytes(kv_type, dtype, head_dim);
  }
  std::uint64_t HiddenBytesPerToken() const { return std::uint64_t{hidden} * DTypeBytes(dtype); }
  std::uint64_t BytesPerToken() const {
    return layers * LayerBytesPerToken() + HiddenBytesPerToken();
  }
  std::uint64_t BytesPerBlock() const { return BytesPerToken() * block_size; }
  std::uint64_t Bytes(std::uint32_t blocks) const { return BytesPerBlock() * blocks; }

  // Blocks for `bytes` of cache memory.
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
