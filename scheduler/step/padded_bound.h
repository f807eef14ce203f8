// The cells that admission to the padded KV layout counts (docs/decisions/0014).
//
// Given lengths that no row ever exceeds, the rows never need more than LeastCells in their best
// partition. Present lengths are smaller, and rows that leave lower the sum.
// DecodeSubBatches takes that partition when the one that it prefers does not fit. So the rows
// never need more cells than admission counted.
//
// Not synchronised; reuses its memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/step/batch_splitter.h"

namespace penstock::scheduler {

// Chooses the partition with the fewest cells, whatever launches cost.
constexpr SplitRule LeastCellsRule(std::uint32_t max_splits) {
  return {SplitObjective::kCost, max_splits, 0, 1, 0};
}

class PaddedBound {
 public:
  explicit PaddedBound(std::uint32_t max_splits) : rule_(LeastCellsRule(max_splits)) {}

  void Clear() { rows_.clear(); }
  // A row that has at most this many positions.
  void Add(std::uint64_t max_positions) { rows_.push_back({max_positions, 1}); }
  // The cells of the best partition into at most max_splits parts.
  std::uint64_t LeastCells() { return rows_.empty() ? 0 : splitter_.Split(rows_, rule_).Cells(); }

 private:
  const SplitRule rule_;
  BatchSplitter splitter_;
  std::vector<SplitRow> rows_;
};

}  // namespace penstock::scheduler
