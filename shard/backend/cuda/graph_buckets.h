// Chooses the recorded CUDA graph of a decode step. A graph has a fixed number of rows and of
// attention work items, so steps are padded to one of a few sizes: rows to a bucket, items to a
// class. Padding rows write a scratch block that no sequence owns. Padding items are empty.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace penstock::shard::cuda {

struct GraphShape {
  std::uint32_t rows = 0;
  std::uint32_t items = 0;  // work items of PagedAttention, summed over the rows
  friend auto operator<=>(const GraphShape&, const GraphShape&) = default;
};

// How many items a step of decodes can have.
struct ItemRule {
  std::uint32_t max_partitions = 1;  // of a row; items grow with the contexts
  // Not 0: partitions become longer instead, and no step has more items than rows + spare.
  std::uint32_t spare = 0;
};

class GraphBuckets {
 public:
  // Buckets 1, 2, 4, 8, then every 8 up to 64, every 16 up to 256 and every 32 beyond, up to
  // `max_rows`. Item classes: per row 1, 4, 16, … partitions up to the most; one class with a
  // spare.
  GraphBuckets(std::uint32_t max_rows, const ItemRule& rule);

  // The smallest shape that holds the step; nothing if none does.
  std::optional<GraphShape> Choose(std::uint32_t rows, std::uint32_t items) const;

  // All shapes that Choose can give, the largest first: memory for the first serves the others.
  std::vector<GraphShape> All() const;

 private:
  std::vector<std::uint32_t> rows_;        // ascending
  std::vector<std::uint32_t> partitions_;  // per row, ascending
  std::uint32_t spare_ = 0;
};

}  // namespace penstock::shard::cuda
