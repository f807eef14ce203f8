// Divides the memory of a KV cache in the padded layout (docs/decisions/0014). It has KV blocks for
// prompts and the prefix cache, and cells for rows that decode.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "shard/cache/paged/paged_layout.h"

namespace penstock::shard {

// How a backend stores padded KV rows.
enum class RowStore : std::uint8_t {
  kDense,   // a sub-batch is one array (cell_layout.h); moving rows needs scratch memory
  kBlocks,  // each row has whole blocks (row_blocks.h), the last of which may exceed the width
};

struct RowLimits {
  RowStore store = RowStore::kDense;
  std::uint32_t rows = 0;  // at most
};

struct PoolSplit {
  std::uint32_t blocks = 0;
  std::uint32_t cells = 0;
};

// Blocks that hold every partition of `cells` cells into at most `rows` rows, each of which has at
// least one cell.
inline std::uint64_t BlocksOfCells(std::uint64_t cells, std::uint64_t rows,
                                   std::uint32_t block_size) {
  const std::uint64_t partly_used = std::min(rows, cells);
  return (cells + partly_used * (block_size - 1)) / block_size;
}

// Cells that fit into `blocks` blocks in every partition.
inline std::uint64_t CellsOfBlocks(std::uint64_t blocks, std::uint64_t rows,
                                   std::uint32_t block_size) {
  return blocks + (blocks - std::min(blocks, rows)) * (block_size - 1);
}

// Moving cells needs a copy of one array: K or V of a cache, or the hidden states.
inline std::uint64_t CellScratchBytes(const PagedLayout& layout) {
  std::uint64_t largest = layout.HiddenBytesPerToken();
  for (const CacheShape& cache : layout.caches) {
    const std::uint64_t head = std::max(layout.KeyBytes(cache), layout.ValueBytes(cache));
    largest = std::max(largest, cache.kv_heads * head);
  }
  return largest;
}

// All memory that `cells` cells take.
inline std::uint64_t CellBytes(const PagedLayout& layout, const RowLimits& limits,
                               std::uint64_t cells) {
  if (limits.store == RowStore::kDense) {
    return cells * (layout.BytesPerToken() + CellScratchBytes(layout));
  }
  return layout.BytesPerBlock() * BlocksOfCells(cells, limits.rows, layout.block_size);
}

// The most cells in `bytes` of memory.
inline std::uint64_t CellsIn(const PagedLayout& layout, const RowLimits& limits,
                             std::uint64_t bytes) {
  if (limits.store == RowStore::kDense) {
    return bytes / (layout.BytesPerToken() + CellScratchBytes(layout));
  }
  return CellsOfBlocks(layout.BlocksIn(bytes), limits.rows, layout.block_size);
}

// Blocks get a quarter of the memory, but enough for the longest sequence, and at most half. Cells
// get the rest.
inline PoolSplit SplitPool(const PagedLayout& layout, const RowLimits& limits, std::uint64_t bytes,
                           std::uint32_t longest_sequence) {
  const std::uint64_t longest = layout.Bytes(layout.BlocksFor(longest_sequence));
  const std::uint64_t store = std::min(std::max(longest, bytes / 4), bytes / 2);
  PoolSplit split;
  split.blocks = layout.BlocksIn(store);
  const std::uint64_t cells = CellsIn(layout, limits, bytes - layout.Bytes(split.blocks));
  split.cells = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(cells, std::numeric_limits<std::uint32_t>::max() / 4));
  return split;
}

}  // namespace penstock::shard
