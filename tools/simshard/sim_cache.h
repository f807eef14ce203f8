// A KV cache whose content can be checked. Each position holds a hash of the whole prefix that ends
// there. The hash is right only if the right tokens were computed in order, into the right block,
// and were not overwritten. So a scheduler bug that makes a real model read wrong keys shows as
// a wrong hash. Examples are a block with two writers, a block freed too early, and a wrong
// cached_length.
//
// One owner: the model thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/ids.h"

namespace penstock::simshard {

class SimCache {
 public:
  SimCache() = default;
  SimCache(std::uint32_t blocks, std::uint32_t block_size);

  void Write(std::span<const BlockId> table, std::uint32_t position, std::uint64_t prefix_hash);
  void Copy(BlockId src, BlockId dst);

  // The first position from `first` on, below `hashes.size()`, whose hash differs, or -1.
  std::int64_t FindWrong(std::span<const BlockId> table, std::span<const std::uint64_t> hashes,
                         std::uint64_t first = 0) const;

  std::uint64_t Bytes() const { return cells_.size() * sizeof(std::uint64_t); }

 private:
  std::uint32_t block_size_ = 16;
  std::vector<std::uint64_t> cells_;  // [blocks][block_size]; 0 = never written
};

}  // namespace penstock::simshard
