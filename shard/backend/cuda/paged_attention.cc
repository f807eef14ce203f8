#include "shard/backend/cuda/paged_attention.h"

#include <algorithm>
#include <bit>

namespace penstock::shard::cuda {
namespace {

// What a query sees before itself, as in PlanAttention.
struct Sight {
  std::uint32_t window = 0;
  std::uint32_t chunk = 0;
};

// The first position to look at for a query at `position`.
std::uint32_t Begin(std::uint32_t position, const Sight& sight, std::uint32_t multiple) {
  const bool whole = sight.window == 0 || position < sight.window;
  const std::uint32_t in_window = whole ? 0 : position - sight.window + 1;
  const std::uint32_t in_chunk = sight.chunk == 0 ? 0 : position / sight.chunk * sight.chunk;
  return std::max(in_window, in_chunk) / multiple * multiple;
}

std::uint32_t EndOf(const AttentionTile& tile) { return tile.first_position + tile.rows; }

std::uint32_t CeilDivide(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

class Planner {
 public:
  Planner(const HeadShape& shape, const Sight& sight, AttentionKind kind)
      : group_(shape.heads / shape.kv_heads), sight_(sight), kind_(kind) {}

  void Add(const RaggedSegment& segment, std::uint32_t table) {
    const std::uint32_t rows = std::max(1u, kMaxQueries / group_);
    if (IsFixed() || segment.query_count <= rows * kMostItemTiles) {
      Cut(segment, table, rows, IsFixed() ? kPartition : kPositionTile, work_.tiles);
    } else {
      Cut(segment, table, kChunkQueries / group_, kPositionTile, work_.chunks);
    }
  }

  AttentionWork Finish(std::uint32_t kv_heads) {
    const auto longer = [](const AttentionTile& a, const AttentionTile& b) {
      return EndOf(a) - a.begin > EndOf(b) - b.begin;
    };
    // The device starts thread blocks in order, so the longest work comes first.
    std::stable_sort(work_.tiles.begin(), work_.tiles.end(), longer);
    std::stable_sort(work_.chunks.begin(), work_.chunks.end(), longer);
    const std::uint32_t partition = IsFixed() ? kPartition : ShortestPartition(kv_heads);
    for (std::uint32_t i = 0; i < work_.tiles.size(); ++i) AddItems(i, partition);
    return std::move(work_);
  }

 private:
  bool IsFixed() const { return kind_ != AttentionKind::kTensorCores; }

  void Cut(const RaggedSegment& segment, std::uint32_t table, std::uint32_t rows,
           std::uint32_t multiple, std::vector<AttentionTile>& out) const {
    for (std::uint32_t row = 0; row < segment.query_count; row += rows) {
      AttentionTile tile;
      tile.first_row = segment.query_start + row;
      tile.rows = std::min(rows, segment.query_count - row);
      tile.first_position = segment.context_length + row;
      tile.table = table;
      tile.begin = Begin(tile.first_position, sight_, multiple);
      out.push_back(tile);
    }
  }

  std::uint32_t CountItems(std::uint32_t partition) const {
    std::uint32_t count = 0;
    for (const AttentionTile& tile : work_.tiles) {
      count += CeilDivide(EndOf(tile) - tile.begin, partition);
    }
    return count;
  }

  // The shortest partition, in whole tiles of positions, whose items are not more than a graph has
  // room for. Every item then does about an equal share of the work, whatever the lengths are.
  std::uint32_t ShortestPartition(std::uint32_t kv_heads) const {
    std::uint32_t longest = kPositionTile;
    for (const AttentionTile& tile : work_.tiles) {
      longest = std::max(longest, EndOf(tile) - tile.begin);
    }
    const auto most = static_cast<std::uint32_t>(work_.tiles.size()) + MostSpareItems(kv_heads);
    std::uint32_t low = 1;
    std::uint32_t high = CeilDivide(longest, kPositionTile);  // one item per tile
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (CountItems(middle * kPositionTile) <= most) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return high * kPositionTile;
  }

  void AddItems(std::uint32_t index, std::uint32_t partition) {
    AttentionTile& tile = work_.tiles[index];
    tile.first_item = static_cast<std::uint32_t>(work_.items.size());
    const std::uint32_t end = EndOf(tile);
    for (std::uint32_t at = tile.begin; at < end; at += partition) {
      work_.items.push_back({index, at, std::min(end, at + partition)});
    }
    tile.partitions = static_cast<std::uint32_t>(work_.items.size()) - tile.first_item;
    for (std::uint32_t i = 0; i < tile.rows; ++i) work_.rows.push_back({tile.first_row + i, index});
  }

  const std::uint32_t group_;
  const Sight sight_;
  const AttentionKind kind_;
  AttentionWork work_;
};

}  // namespace

AttentionKind AttentionKindOf(DType dtype, const HeadShape& shape, std::uint32_t block_size,
                              bool adjusted) {
  // The head sizes that have kernels, and those that have kernels for adjusted scores.
  constexpr std::uint32_t kDims[] = {16, 64, 80, 96, 128, 256};
  constexpr std::uint32_t kAdjustedDims[] = {16, 64, 128, 256};
  const std::span<const std::uint32_t> dims =
      adjusted ? std::span(kAdjustedDims) : std::span<const std::uint32_t>(kDims);
  const bool has_kernel = std::find(dims.begin(), dims.end(), shape.head_dim) != dims.end();
  return dtype == DType::kBFloat16 && has_kernel && std::has_single_bit(block_size)
             ? AttentionKind::kTensorCores
             : AttentionKind::kFloat;
}

AttentionWork PlanAttention(std::span<const RaggedSegment> segments,
                            std::span<const std::uint32_t> tables, const HeadShape& shape,
                            std::uint32_t window, AttentionKind kind, std::uint32_t chunk) {
  Planner planner(shape, {window, chunk}, kind);
  for (std::size_t i = 0; i < segments.size(); ++i) planner.Add(segments[i], tables[i]);
  return planner.Finish(shape.kv_heads);
}

std::uint32_t MostSpareItems(std::uint32_t kv_heads) {
  // With these, rounding to whole tiles leaves no item over 1.3 of a thread block's mean share.
  return CeilDivide(8 * kResidentBlocks, 5 * kv_heads);
}

std::uint64_t WorkspaceFloats(std::uint64_t items, const HeadShape& shape) {
  return items * shape.kv_heads * kMaxQueries * (shape.head_dim + 2);
}

}  // namespace penstock::shard::cuda
