#include "shard/backend/cuda/paged_attention.h"

#include <algorithm>

namespace penstock::shard::cuda {
namespace {

// First position that a query at `position` sees.
std::uint32_t FirstSeen(std::uint32_t position, std::uint32_t window) {
  return window == 0 || position < window ? 0 : position - window + 1;
}

AttentionTile MakeTile(const RaggedSegment& segment, std::uint32_t row, std::uint32_t tile_rows,
                       std::uint32_t window) {
  AttentionTile tile;
  tile.first_row = segment.query_start + row;
  tile.rows = std::min(tile_rows, segment.query_count - row);
  tile.first_position = segment.context_length + row;
  const std::uint32_t last = tile.first_position + tile.rows - 1;
  tile.first_partition = FirstSeen(tile.first_position, window) / kPartition;
  tile.partitions = last / kPartition - tile.first_partition + 1;
  return tile;
}

}  // namespace

AttentionWork PlanAttention(std::span<const RaggedSegment> segments,
                            std::span<const std::uint32_t> tables, const HeadShape& shape,
                            std::uint32_t window) {
  AttentionWork work;
  const std::uint32_t tile_rows = std::max(1u, kMaxQueries / (shape.heads / shape.kv_heads));
  for (std::size_t i = 0; i < segments.size(); ++i) {
    for (std::uint32_t row = 0; row < segments[i].query_count; row += tile_rows) {
      AttentionTile tile = MakeTile(segments[i], row, tile_rows, window);
      tile.table = tables[i];
      tile.first_item = static_cast<std::uint32_t>(work.items.size());
      const auto index = static_cast<std::uint32_t>(work.tiles.size());
      for (std::uint32_t p = 0; p < tile.partitions; ++p) {
        work.items.push_back({index, tile.first_partition + p});
      }
      work.row_tiles.insert(work.row_tiles.end(), tile.rows, index);
      work.tiles.push_back(tile);
    }
  }
  return work;
}

std::uint64_t WorkspaceFloats(std::uint64_t items, const HeadShape& shape) {
  return items * shape.kv_heads * kMaxQueries * (shape.head_dim + 2);
}

}  // namespace penstock::shard::cuda
