// Decode sub-batches of one replica group, on backends with padded attention. No other part of the
// scheduler knows what such a backend needs:
//
//   padded attention  attention costs as much for padding as for tokens, so decodes of similar
//                     length share a sub-batch (decode_sub_batches.h)
//   padded KV layout  in addition, K and V of a decoding sequence are in a padded KV row of its
//                     sub-batch. The sequence leaves its KV blocks with its first decode. Admission
//                     counts the cells that the rows may need (padded_bound.h,
//                     docs/decisions/0014).
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
#include "scheduler/step/decode_sub_batches.h"
#include "scheduler/step/padded_bound.h"
#include "scheduler/step/sequence_table.h"
#include "scheduler/step/step_draft.h"

namespace penstock::scheduler {

class PaddedLayout {
 public:
  // Whether the K and V of decodes are in padded KV rows.
  static bool StoresRows(const GroupCapacity& capacity) { return capacity.cells > 0; }
  // Positions that KV blocks hold, of a sequence with `prompt` prompt positions and `all` in total.
  static std::uint64_t PositionsInBlocks(const GroupCapacity& capacity, std::uint64_t prompt,
                                         std::uint64_t all) {
    return StoresRows(capacity) ? prompt : all;
  }
  // Whether the padded KV rows have room for that many cells.
  static bool RowsHold(const GroupCapacity& capacity, std::uint64_t cells) {
    return !StoresRows(capacity) || cells <= capacity.cells;
  }

  // `table` must outlive the object.
  PaddedLayout(const Config& config, const GroupUp& up, SequenceTable& table);

  bool stores_rows() const { return StoresRows(capacity_); }
  // The cells that the running sequences, `work` and `others` need until they end. `others` has
  // the maximum lengths of more sequences. 0 without padded KV rows.
  std::uint64_t CellsNeeded(const Work& work, const std::vector<std::uint64_t>& others);

  void BeginStep() { rows_.clear(); }
  // The newest segment of the draft decodes the sequence: this many query rows, which read
  // `positions` positions.
  void AddDecode(Sequence& sequence, std::uint64_t positions, std::uint32_t query_rows,
                 const StepDraft& draft) {
    if (Splits()) AddRow(sequence, positions, query_rows, draft);
  }
  // A sequence that does not decode in this step keeps its padded row.
  void KeepRow(const Sequence& sequence) {
    if (stores_rows()) KeepStoredRow(sequence);
  }
  // Chooses the sub-batches. All decodes of the step were added.
  void SplitDecodes(const CostModel& cost, StepDraft& draft, Time now, Outputs& out);
  // Makes a sub-batch of each prefill chunk. All segments are in the plan.
  void AddPrompts(StepPlan& plan) const;
  // Adds the layout of a step that is sent.
  void Describe(StepInfo& info);

  // The result of a step that refers to the sequence arrived.
  void OnResult(Sequence& sequence, StepId step);

 private:
  void AddRow(Sequence& sequence, std::uint64_t positions, std::uint32_t query_rows,
              const StepDraft& draft);
  void KeepStoredRow(const Sequence& sequence);
  bool Splits() const { return capacity_.padded_attention || stores_rows(); }

  const GroupId group_;
  const GroupCapacity capacity_;
  SequenceTable& table_;
  PaddedBound bound_;
  DecodeSubBatches sub_batches_;
  std::vector<DecodeRow> rows_;  // of the step being composed
  bool resplit_ = false;         // a new partition was taken since the last step that was sent
};

}  // namespace penstock::scheduler
