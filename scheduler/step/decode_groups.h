// Keeps the decode batch of one group split by length from step to step, on backends whose
// attention costs padded cells. The best partition is computed when rows join or leave and every
// kResplitSteps steps, since lengths drift. It is taken only when it pays: moving a row between
// parts copies its cells, so what the new partition saves until the next look must exceed that.
// All costs are counted in cells.
//
// Where the kept partition misses max_sparsity and the new one meets it, launches do not count
// against the new one: the rule asked for them.
//
// In the padded KV layout the parts are the memory: a row is there from its first decode to its
// end, whether it computes or not, and what the parts take never exceeds the row store. Where the
// rule, or keeping the old partition, would exceed it, the one with the least cells is taken
// (cell_bound.h).
//
// Threading: one owner; reuses its memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "scheduler/step/batch_splitter.h"

namespace penstock::scheduler {

constexpr std::uint32_t kResplitSteps = 32;
// Moving a cell reads and writes what attention only reads.
constexpr std::uint64_t kMoveCells = 2;

struct DecodeRow {
  static constexpr std::uint32_t kNoSegment = UINT32_MAX;

  SequenceId sequence;
  SlotId slot;
  std::uint64_t length = 0;   // positions in the cache at present
  std::uint32_t weight = 1;   // query rows: what attention costs. In memory it is one row
  std::uint32_t segment = 0;  // its index in StepPlan::segments; kNoSegment: computes nothing
};

class DecodeGroups {
 public:
  // The rule's costs are ignored: Update brings them.
  // `cells`: of the row store in the padded KV layout; 0 = the rows are not memory.
  explicit DecodeGroups(const SplitRule& rule, std::uint64_t cells = 0)
      : rule_(rule), cells_(cells) {
    rule_.cell_cost = 1;
  }

  // For the decodes of one step, in order of sequence id; one more launch costs as much as
  // `launch_cells` cells. True when a partition into several parts, or back into one, was taken.
  bool Update(std::span<const DecodeRow> rows, std::uint64_t launch_cells);

  // Of the last Update.
  std::uint32_t parts() const { return static_cast<std::uint32_t>(sizes_.size()); }
  std::uint32_t PartOf(std::size_t row) const { return part_[row]; }
  bool Moved(std::size_t row) const { return moved_[row]; }  // to another part, or a first one
  // Positions of all rows, with padding and without.
  std::uint64_t Cells() const { return CellsOf(sizes_); }
  std::uint64_t Tokens() const { return tokens_; }

  // One attention sub-batch per part, appended.
  void AddGroups(std::span<const DecodeRow> rows, std::vector<SegmentGroup>& groups) const;

 private:
  struct PartSize {
    std::uint64_t longest = 0;
    std::uint64_t rows = 0;
    std::uint64_t weight = 0;

    std::uint64_t Cost() const { return longest * weight; }
    void Add(const DecodeRow& row) {
      longest = std::max(longest, row.length);
      ++rows;
      weight += row.weight;
    }
  };
  using Sizes = std::vector<PartSize>;
  static std::uint64_t CellsOf(const Sizes& sizes) {
    std::uint64_t cells = 0;
    for (const PartSize& size : sizes) cells += size.longest * size.rows;
    return cells;
  }
  static constexpr std::uint32_t kNone = UINT32_MAX;

  bool SameMembers(std::span<const DecodeRow> rows) const;
  void CarryOver(std::span<const DecodeRow> rows);
  void PlaceNewcomers(std::span<const DecodeRow> rows, std::uint64_t launch_cells);
  void DropEmptyParts();
  void ComputeFresh(std::span<const DecodeRow> rows, const SplitRule& rule, bool weighted);
  bool Overflows(const Sizes& sizes) const { return cells_ > 0 && CellsOf(sizes) > cells_; }
  std::uint64_t MatchParts(std::span<const DecodeRow> rows);
  bool Pays(std::uint64_t launch_cells, std::uint64_t tokens, std::uint64_t moved_cells) const;
  void TakeFresh();

  SplitRule rule_;
  const std::uint64_t cells_;
  std::uint64_t tokens_ = 0;
  BatchSplitter splitter_;
  std::uint32_t steps_since_ = 0;
  std::vector<SequenceId> members_;  // of the last Update, ascending
  std::vector<std::uint32_t> part_;  // of each member
  std::vector<bool> moved_;          // each member, in the last Update
  Sizes sizes_;                      // of the parts

  // Scratch of one Update.
  std::vector<std::uint32_t> carried_;  // part of each row before; kNone = a newcomer
  std::vector<std::uint32_t> fresh_;    // part of each row in the new partition
  Sizes fresh_sizes_;
  std::vector<std::uint32_t> base_;  // for each fresh part the old one whose cells stay in place
  std::vector<SplitRow> split_rows_;
};

}  // namespace penstock::scheduler
