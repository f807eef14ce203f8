// What admission to the padded KV layout counts (docs/decisions/0014). With lengths that no row
// ever exceeds, LeastCells is what the rows need whenever they are put into their best partition:
// present lengths are below those, and rows that leave only lower it. DecodeGroups falls back to
// that partition where the one it would take does not fit, so the row store never overflows.
//
// Not synchronised; reuses its memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/step/batch_splitter.h"

namespace penstock::scheduler {

// The partition with the least cells: launches cost nothing.
constexpr SplitRule LeastCellsRule(std::uint32_t max_splits) {
  return {SplitObjective::kCost, max_splits, 0, 1, 0};
}

class CellBound {
 public:
  explicit CellBound(std::uint32_t max_splits) : rule_(LeastCellsRule(max_splits)) {}

  void Clear() { rows_.clear(); }
  void Add(std::uint64_t most_positions) { rows_.push_back({most_positions, 1}); }
  // Of the best partition of the rows added since Clear into at most max_splits parts.
  std::uint64_t LeastCells() { return rows_.empty() ? 0 : splitter_.Split(rows_, rule_).Cells(); }

 private:
  const SplitRule rule_;
  BatchSplitter splitter_;
  std::vector<SplitRow> rows_;
};

}  // namespace penstock::scheduler
