// The best partition of a decode batch by length, for attention that is padded. A cell is one row
// at one position. A part of `w` rows whose longest row has `L` positions costs w * L cells, and
// every part costs one more launch (docs/scheduling.md, "Splitting the batch").
//
// An optimal partition into k parts consists of runs of the rows sorted by length. The padding of a
// run has the Monge property, so the best cut moves in one direction as the begin of the run does.
// Divide and conquer finds all cuts in O(n log n) for each k. Of equal cuts the earliest is taken.
//
// Integer arithmetic only. Not synchronised; Split reuses its memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::scheduler {

struct SplitRow {
  std::uint64_t length = 0;
  std::uint32_t weight = 1;  // rows of this length, >= 1: the candidates of a contrastive search
};

enum class SplitObjective : std::uint8_t {
  kSparsity,  // as few parts as keep padding / (padding + tokens) at most max_sparsity
  kCost,      // the smallest cells * cell_cost + parts * part_cost
};

struct SplitRule {
  SplitObjective objective = SplitObjective::kCost;
  std::uint32_t max_splits = 3;              // a hard limit: parts run one after another
  std::uint32_t max_sparsity_ppm = 330'000;  // a target; max_splits goes first
  std::uint64_t cell_cost = 1;
  std::uint64_t part_cost = 0;  // in the same unit
  friend bool operator==(const SplitRule&, const SplitRule&) = default;
};

struct BatchPartition {
  std::vector<std::uint32_t> order;  // indexes of rows: longest first, then by index
  std::vector<std::uint32_t> ends;   // part p is order[ends[p - 1] .. ends[p]); never empty
  std::uint64_t tokens = 0;          // sum of weight * length
  std::uint64_t padding = 0;         // cells that hold no token

  std::uint64_t Cells() const { return tokens + padding; }
  std::span<const std::uint32_t> Part(std::size_t p) const {
    const std::uint32_t begin = p == 0 ? 0 : ends[p - 1];
    return std::span(order).subspan(begin, ends[p] - begin);
  }
};

// padding / (padding + tokens) <= max_sparsity, without rounding.
bool WithinSparsity(std::uint64_t padding, std::uint64_t tokens, std::uint32_t max_sparsity_ppm);

class BatchSplitter {
 public:
  // The result is valid until the next call. Without rows it has no parts.
  const BatchPartition& Split(std::span<const SplitRow> rows, const SplitRule& rule);

 private:
  void Sort(std::span<const SplitRow> rows);
  std::uint64_t RunPadding(std::uint32_t begin, std::uint32_t end) const;
  void AddLayer(std::uint32_t parts);
  void Solve(std::uint32_t parts, std::uint32_t first, std::uint32_t last, std::uint32_t low,
             std::uint32_t high);
  std::uint32_t ChooseBySparsity(std::uint32_t most);
  std::uint32_t ChooseByCost(std::uint32_t most, const SplitRule& rule);
  void WriteEnds(std::uint32_t parts);

  BatchPartition partition_;
  std::uint32_t count_ = 0;
  std::vector<std::uint64_t> lengths_;  // sorted
  std::vector<std::uint64_t> weights_;  // of the first i rows
  std::vector<std::uint64_t> tokens_;   // weight * length, of the first i rows
  // For exactly k parts: the smallest padding of the rows from i on, and the first cut.
  std::vector<std::uint64_t> padding_;
  std::vector<std::uint64_t> previous_;
  std::vector<std::vector<std::uint32_t>> cuts_;  // [k - 1][i]
  std::uint32_t max_sparsity_ppm_ = 0;
};

}  // namespace penstock::scheduler
