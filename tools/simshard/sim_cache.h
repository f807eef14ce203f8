// A KV cache whose content can be checked. Each cell holds a hash of the whole prefix that ends at
// its position, so a cell is right only when the right tokens were computed in the right order,
// into the right block, and nobody wrote over it. Any mistake of a scheduler that would make a real
// model attend to wrong keys (a block with two writers, one freed too early, a wrong cached_length)
// is found here as a wrong cell.
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

  // The first position below `hashes.size()` whose cell differs, or -1.
  std::int64_t FindWrong(std::span<const BlockId> table,
                         std::span<const std::uint64_t> hashes) const;

  std::uint64_t Bytes() const { return cells_.size() * sizeof(std::uint64_t); }

 private:
  std::uint32_t block_size_ = 16;
  std::vector<std::uint64_t> cells_;  // [blocks][block_size]; 0 = never written
};

}  // namespace penstock::simshard
