// Divides the memory of a KV cache in the padded layout (docs/decisions/0014). It has KV blocks for
// prompts and the prefix cache, cells for rows that decode, and scratch memory for moving cells.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "shard/cache/paged/paged_layout.h"

namespace penstock::shard {

struct PoolSplit {
  std::uint32_t blocks = 0;
  std::uint32_t cells = 0;
};

// Moving cells needs a copy of one array: K or V of a cache, or the hidden states.
inline std::uint64_t CellScratchBytes(const PagedLayout& layout) {
  std::uint64_t largest = layout.HiddenBytesPerToken();
  for (const CacheShape& cache : layout.caches) {
    const std::uint64_t head = std::max(layout.KeyBytes(cache), layout.ValueBytes(cache));
    largest = std::max(largest, cache.kv_heads * head);
  }
  return largest;
}

inline std::uint64_t CellBytes(const PagedLayout& layout) {
  return layout.BytesPerToken() + CellScratchBytes(layout);
}

// Blocks get a quarter of the memory, but enough for the longest sequence, and at most half. Cells
// get the rest.
inline PoolSplit SplitPool(const PagedLayout& layout, std::uint64_t bytes,
                           std::uint32_t longest_sequence) {
  const std::uint64_t longest = layout.Bytes(layout.BlocksFor(longest_sequence));
  const std::uint64_t store = std::min(std::max(longest, bytes / 4), bytes / 2);
  PoolSplit split;
  split.blocks = layout.BlocksIn(store);
  const std::uint64_t cells = (bytes - layout.Bytes(split.blocks)) / CellBytes(layout);
  split.cells = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(cells, std::numeric_limits<std::uint32_t>::max() / 4));
  return split;
}

}  // namespace penstock::shard
