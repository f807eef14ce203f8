// Decode sub-batches of one replica group, on backends whose attention is padded. The only part of
// the scheduler that knows what such a backend needs:
//
//   padded attention  attention costs the same for padding as for tokens. Decodes of similar length
//                     share a sub-batch (decode_groups.h).
//   padded KV layout  in addition, the K and V of a decoding sequence lie in a row of its
//                     sub-batch, as wide as the longest row. The sequence leaves its KV blocks with
//                     its first decode. Admission counts the positions that the rows may need
//                     (cell_bound.h, docs/decisions/0014).
//
// For other backends every call does nothing. Not synchronised; one owner, the GroupScheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/plan/group.h"
#include "common/plan/step_plan.h"
#include "common/time.h"
#include "scheduler/config.h"
#include "scheduler/cost/cost_model.h"
#include "scheduler/input.h"
#include "scheduler/output.h"
#include "scheduler/step/cell_bound.h"
#include "scheduler/step/decode_groups.h"
#include "scheduler/step/sequence_table.h"
#include "scheduler/step/step_draft.h"

namespace penstock::scheduler {

class PaddedLayout {
 public:
  // Whether the K and V of decodes lie in padded rows.
  static bool StoresRows(const GroupCapacity& capacity) { return capacity.cells > 0; }
  // Of `prompt` positions that are prefilled and `all` that a sequence may have, those in blocks.
  static std::uint64_t PositionsInBlocks(const GroupCapacity& capacity, std::uint64_t prompt,
                                         std::uint64_t all) {
    return StoresRows(capacity) ? prompt : all;
  }
  // Whether padded rows have room for that many positions.
  static bool RowsHold(const GroupCapacity& capacity, std::uint64_t positions) {
    return !StoresRows(capacity) || positions <= capacity.cells;
  }

  // `table` must outlive the object.
  PaddedLayout(const Config& config, const GroupUp& up, SequenceTable& table);

  bool stores_rows() const { return StoresRows(capacity_); }
  // Positions of padded rows, with all running sequences, `others` (their greatest lengths) and
  // `work` at their greatest lengths.
  std::uint64_t PositionsNeeded(const Work& work, const std::vector<std::uint64_t>& others);

  void BeginStep() { rows_.clear(); }
  // The draft's newest segment is a decode of the sequence with this many query rows, which read
  // `positions` positions.
  void AddDecode(Sequence& sequence, std::uint64_t positions, std::uint32_t query_rows,
                 const StepDraft& draft);
  // A sequence that does not decode in this step keeps its padded row.
  void KeepRow(const Sequence& sequence);
  // All decodes of the step were added: chooses the sub-batches.
  void SplitDecodes(const CostModel& cost, StepDraft& draft, Time now, Outputs& out);
  // All segments are in the plan: each prefill chunk is a sub-batch of its own.
  void AddPrompts(StepPlan& plan) const;
  void Describe(StepInfo& info) const;

  // The result of a step that refers to the sequence arrived.
  void OnResult(Sequence& sequence, StepId step);

 private:
  bool Splits() const { return capacity_.padded_attention || stores_rows(); }

  const GroupId group_;
  const GroupCapacity capacity_;
  SequenceTable& table_;
  CellBound bound_;
  DecodeGroups groups_;
  std::vector<DecodeRow> rows_;  // of the step being made
  bool resplit_ = false;         // the step changed the partition
};

}  // namespace penstock::scheduler
