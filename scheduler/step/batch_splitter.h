// Exact partition of a decode batch by length, for attention whose cost is by padded cells: a part
// of `w` rows whose longest is `L` costs w * L cells, and every part costs one more launch. The
// sequence scheduler's problem (docs/scheduling.md, "Splitting the batch").
//
// Some best partition into k parts is made of runs of the rows sorted by length, and the padding of
// a run is Monge, so the best k-th cut moves one way as the run's begin does: divide and conquer
// finds all of them in O(n log n) for each k. Ties go to the earliest cut.
//
// Rows weigh what they count (k candidates of a contrastive search are k rows of one length).
// All arithmetic is integer. Threading: one owner; Split reuses its memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::scheduler {

struct SplitRow {
  std::uint64_t length = 0;
  std::uint32_t weight = 1;  // >= 1
};

enum class SplitObjective : std::uint8_t {
  kSparsity,  // the least parts whose padding / (padding + tokens) is at most max_sparsity
  kCost,      // the least cells * cell_cost + parts * part_cost
};

struct SplitRule {
  SplitObjective objective = SplitObjective::kCost;
  std::uint32_t max_splits = 3;              // hard: parts are launches one after the other
  std::uint32_t max_sparsity_ppm = 330'000;  // a target: missed where max_splits binds
  std::uint64_t cell_cost = 1;
  std::uint64_t part_cost = 0;  // in the unit of cell_cost
  friend bool operator==(const SplitRule&, const SplitRule&) = default;
};

struct Partition {
  std::vector<std::uint32_t> order;  // indexes of the rows, longest first, ties by index
  std::vector<std::uint32_t> ends;   // part p is order[ends[p - 1] .. ends[p]); never empty
  std::uint64_t tokens = 0;          // sum of weight * length
  std::uint64_t padding = 0;         // cells beyond them

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
  // Valid until the next call. No rows: no parts.
  const Partition& Split(std::span<const SplitRow> rows, const SplitRule& rule);

 private:
  void Sort(std::span<const SplitRow> rows);
  std::uint64_t RunPadding(std::uint32_t begin, std::uint32_t end) const;
  void AddLayer(std::uint32_t parts);
  void Solve(std::uint32_t parts, std::uint32_t first, std::uint32_t last, std::uint32_t low,
             std::uint32_t high);
  std::uint32_t ChooseBySparsity(std::uint32_t most);
  std::uint32_t ChooseByCost(std::uint32_t most, const SplitRule& rule);
  void WriteEnds(std::uint32_t parts);

  Partition partition_;
  std::uint32_t count_ = 0;
  std::vector<std::uint64_t> lengths_;  // sorted
  std::vector<std::uint64_t> weights_;  // sums of the first i
  std::vector<std::uint64_t> tokens_;   // sums of weight * length of the first i
  // Of the layer for exactly k parts: least padding of the rows from i on, and the first cut.
  std::vector<std::uint64_t> padding_;
  std::vector<std::uint64_t> previous_;
  std::vector<std::vector<std::uint32_t>> cuts_;  // [k - 1][i]
  std::uint32_t max_sparsity_ppm_ = 0;
};

}  // namespace penstock::scheduler
