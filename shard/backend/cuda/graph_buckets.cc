#include "shard/backend/cuda/graph_buckets.h"

#include <algorithm>

namespace penstock::shard::cuda {
namespace {

constexpr std::uint32_t kClassFactor = 4;

std::uint32_t Next(std::uint32_t rows) {
  if (rows < 8) return rows * 2;
  if (rows < 64) return rows + 8;
  return rows < 256 ? rows + 16 : rows + 32;
}

}  // namespace

GraphBuckets::GraphBuckets(std::uint32_t max_rows, const ItemRule& rule) : spare_(rule.spare) {
  for (std::uint32_t rows = 1; rows < max_rows; rows = Next(rows)) rows_.push_back(rows);
  if (max_rows > 0) rows_.push_back(max_rows);
  const std::uint32_t most = rule.spare > 0 ? 1 : rule.max_partitions;
  for (std::uint32_t count = 1; count < most; count *= kClassFactor) partitions_.push_back(count);
  partitions_.push_back(std::max(1u, most));
}

std::optional<GraphShape> GraphBuckets::Choose(std::uint32_t rows, std::uint32_t items) const {
  const auto bucket = std::lower_bound(rows_.begin(), rows_.end(), rows);
  if (bucket == rows_.end()) return std::nullopt;
  for (std::uint32_t partitions : partitions_) {
    const GraphShape shape{*bucket, partitions * *bucket + spare_};
    if (shape.items >= items) return shape;
  }
  return std::nullopt;
}

std::vector<GraphShape> GraphBuckets::All() const {
  std::vector<GraphShape> shapes;
  for (auto rows = rows_.rbegin(); rows != rows_.rend(); ++rows) {
    for (auto count = partitions_.rbegin(); count != partitions_.rend(); ++count) {
      shapes.push_back({*rows, *rows * *count + spare_});
    }
  }
  return shapes;
}

}  // namespace penstock::shard::cuda
