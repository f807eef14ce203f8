// The decode sub-batches of one replica group, kept from step to step, on backends with padded
// attention (batch_splitter.h defines cells).
//
// The best partition is computed when rows come or leave, and every kResplitSteps steps, since
// lengths change. Moving a row to another sub-batch copies its cells. So the new partition is taken
// only if its savings until the next computation exceed the cost of the copies. Where the old
// partition exceeds max_sparsity and the new one does not, launches are not counted against the new
// one.
//
// In the padded KV layout a sub-batch is also memory. A row is in one from its first decode to its
// end, whether it computes or not, and all sub-batches together must fit the cells of the group. If
// the preferred partition does not fit, the one with the fewest cells is taken (padded_bound.h).
//
// Not synchronised; reuses its memory.
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
// Cost of copying a cell: it is read and written, while attention only reads it.
constexpr std::uint64_t kMoveCells = 2;

struct DecodeRow {
  static constexpr std::uint32_t kNoSegment = UINT32_MAX;

  SequenceId sequence;
  SlotId slot;
  std::uint64_t length = 0;   // positions after this step
  std::uint32_t weight = 1;   // query rows; in memory it is one row
  std::uint32_t segment = 0;  // index in StepPlan::segments; kNoSegment: the row does not compute
};

class DecodeSubBatches {
 public:
  // The costs of `rule` are ignored; Update passes them. `cells`: what all sub-batches together may
  // hold in the padded KV layout; 0 = no limit.
  explicit DecodeSubBatches(const SplitRule& rule, std::uint64_t cells = 0)
      : rule_(rule), cells_(cells) {
    rule_.cell_cost = 1;
  }

  // `rows`: the decodes of one step, by ascending sequence id. A launch costs as much as
  // `launch_cells` cells. Returns true if the partition is new, and it or the old one has several
  // sub-batches.
  bool Update(std::span<const DecodeRow> rows, std::uint64_t launch_cells);

  // The sub-batches of the last Update.
  std::uint32_t parts() const { return static_cast<std::uint32_t>(sizes_.size()); }
  std::uint32_t PartOf(std::size_t row) const { return part_[row]; }
  // The row is in another sub-batch than before, or in its first one.
  bool Moved(std::size_t row) const { return moved_[row]; }
  // Cells of all sub-batches, with padding and without.
  std::uint64_t Cells() const { return CellsOf(sizes_); }
  std::uint64_t Tokens() const { return tokens_; }

  // Appends the sub-batches to a plan.
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
  void PlaceNewRows(std::span<const DecodeRow> rows, std::uint64_t launch_cells);
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
  std::vector<bool> moved_;          // of each member, in the last Update
  Sizes sizes_;                      // of the parts

  // Scratch of one Update.
  std::vector<std::uint32_t> carried_;  // old part of each row; kNone = new row
  std::vector<std::uint32_t> fresh_;    // new part of each row
  Sizes fresh_sizes_;
  std::vector<std::uint32_t> base_;  // the old part that each new one extends
  std::vector<SplitRow> split_rows_;
};

}  // namespace penstock::scheduler
