// Decides whether a plan makes sense for the present state of the shard. A plan that does not is a
// mistake of the router: the error is INVALID_ARGUMENT and names the field, the value and the
// limit, and the group ends.
//
// The checker keeps its own small copy of the control state, derived from plans and results alone:
// which slots are taken, how far each prompt was computed, each block table, and in how many tables
// each block stands. From it follow the guarantees that it enforces:
//   - lengths are gapless: a prompt segment starts where the one before ended, a decode only after
//     the whole prompt;
//   - no position is computed without a block, and a block is written only while it stands in one
//     table (G1: no block has two writers);
//   - no plan exceeds the step budget (G5);
//   - rows of the padded layout fit the row store, and what they write fits their width.
//
// Pure: no threads, no clock. One owner (the model thread).
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "shard/service/plan_bounds.h"

namespace penstock::shard {

class PlanChecker {
 public:
  explicit PlanChecker(PlanBounds bounds);

  // Checks `plan` against the state and moves the state on. After an error the state is undefined
  // until Reset.
  absl::Status Check(const StepPlan& plan);

  // Takes in the result of the plan checked last. An error (INTERNAL) is a mistake of the engine.
  absl::Status Observe(const StepPlan& plan, const StepResult& result);

  // Steps that run ahead of their results: after Check, what the plan commits counts as committed,
  // and its result is observed later, in order, by what it says of sequences that end.
  void Assume(const StepPlan& plan);
  absl::Status ObserveAssumed(const StepPlan& plan, const StepResult& result);

  // All slots free; the next step is 1.
  void Reset();

 private:
  struct Slot {
    SequenceId sequence;
    std::uint32_t prompt_length = 0;
    std::uint32_t computed = 0;   // prompt positions planned so far
    std::uint32_t committed = 0;  // positions with K/V, by results; `computed` while in the prompt
    bool finished = false;
    bool grammar = false;
    bool owes_pick = false;        // of a row that was computed; its decodes write nothing
    std::uint32_t candidates = 0;  // rows of each decode; 0: not contrastive
    // Positions that a decode of `rows` rows may write, and commits at most.
    std::uint32_t Writes(std::uint32_t rows) const { return candidates > 0 ? 1 : rows; }
    std::uint32_t width = 0;  // of its row in the padded layout, in the present plan
    bool in_cells = false;    // it has joined: its table is empty
    bool left = false;        // and is no longer listed: its cells are gone
    std::vector<std::vector<BlockId>> tables;  // per kv_group
  };

  absl::Status CheckHeader(const StepPlan& plan);
  absl::Status ApplyEnds(const StepPlan& plan);
  absl::Status ApplyStarts(const StepPlan& plan);
  absl::Status ApplyBlockOps(const StepPlan& plan);
  absl::Status ApplyAppend(const BlockOp& op);
  absl::Status ApplyCopy(const BlockOp& op) const;
  absl::Status ApplySegments(const StepPlan& plan);
  absl::Status ApplyPrompt(const Segment& segment, Slot& slot);
  absl::Status CheckDecode(const Segment& segment, const Slot& slot) const;
  absl::Status CheckWritable(const Slot& slot, std::uint32_t first, std::uint32_t count,
                             const char* field) const;
  absl::Status CheckGroups(const StepPlan& plan) const;
  absl::Status ApplyRows(const StepPlan& plan);
  absl::Status ApplyRow(SlotId id, std::uint32_t width);
  absl::Status CheckDecodesInRows(const StepPlan& plan) const;
  absl::Status ObserveEach(const StepPlan& plan, const StepResult& result, bool assumed);
  absl::Status ObserveSequence(const SequenceResult& result, const Segment& segment, bool assumed);

  absl::Status FindActive(SlotId id, const char* field, Slot** slot);
  absl::Status CheckBlock(BlockId block, const char* field) const;
  void Free(Slot& slot);
  void FreeBlocks(Slot& slot);

  PlanBounds bounds_;
  std::uint64_t next_step_ = 1;
  std::vector<std::optional<Slot>> slots_;
  std::unordered_set<std::uint64_t> sequences_;
  std::vector<std::uint32_t> block_uses_;  // number of tables that hold the block
};

}  // namespace penstock::shard
