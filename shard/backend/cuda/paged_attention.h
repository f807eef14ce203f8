// Attention over the paged cache: decode, prefill chunks and cached prefixes by one routine.
//
// A sequence's positions are cut into partitions of kPartition, always from position 0. A thread
// block computes one partition for a tile of query rows and one KV head with all query heads that
// share it; the partitions of a row are then merged from left to right (flash decoding, Dao et al.
// 2023). So a row's bits depend on its own sequence alone, and long contexts fill the device.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/cuda/kernels.h"

namespace penstock::shard::cuda {

inline constexpr std::uint32_t kPartition = 256;  // positions
inline constexpr std::uint32_t kMaxQueries = 16;  // query rows x heads per KV head of a block

// Consecutive rows of one sequence, at most kMaxQueries / (heads per KV head) of them.
struct AttentionTile {
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t first_position = 0;   // of first_row
  std::uint32_t table = 0;            // where the sequence's blocks begin in `blocks`
  std::uint32_t first_partition = 0;  // the first that a row of the tile sees
  std::uint32_t partitions = 0;
  std::uint32_t first_item = 0;  // index into `items`; item i belongs to workspace slot i
};

// One thread block per KV head.
struct AttentionItem {
  std::uint32_t tile = 0;
  std::uint32_t partition = 0;
};

// The work of a step for layers of one window, made on the host.
struct AttentionWork {
  std::vector<AttentionTile> tiles;
  std::vector<AttentionItem> items;
  std::vector<std::uint32_t> row_tiles;  // [rows]: the tile of each row
};

// `tables[i]`: where segment i's blocks begin. `window`: positions a query sees; 0 = all.
AttentionWork PlanAttention(std::span<const RaggedSegment> segments,
                            std::span<const std::uint32_t> tables, const HeadShape& shape,
                            std::uint32_t window);

// Float32 values that `items` work items need.
std::uint64_t WorkspaceFloats(std::uint64_t items, const HeadShape& shape);

// Everything lies on the device.
struct AttentionArgs {
  const void* qkv = nullptr;     // elements [rows, (heads + 2 kv_heads) * head_dim]
  const void* keys = nullptr;    // elements [blocks * block_size, kv_heads, head_dim]
  const void* values = nullptr;  // the same
  void* out = nullptr;           // elements [rows, heads * head_dim]
  const AttentionTile* tiles = nullptr;
  const AttentionItem* items = nullptr;
  const std::uint32_t* row_tiles = nullptr;
  const std::uint32_t* blocks = nullptr;  // all tables, one after another
  float* workspace = nullptr;             // WorkspaceFloats(item_count, shape)
  std::uint32_t item_count = 0;
  std::uint32_t rows = 0;
  std::uint32_t block_size = 16;
  std::uint32_t window = 0;
  float scale = 1.0f;
  HeadShape shape;
};
absl::Status PagedAttention(const AttentionArgs& args, DType dtype, Stream stream);

}  // namespace penstock::shard::cuda
