// Checks whether a plan is valid in the present state of the shard. An invalid plan is a bug of the
// router. Its error is INVALID_ARGUMENT with the field, the value and the limit, and the group
// ends.
//
// The checker keeps a small copy of the control state, which follows from plans and results. It
// knows the used slots, the computed length of each prompt, each block table, and the number of
// tables that hold each block. Entries that lie before the window of their sequence hold nothing.
// It enforces these guarantees:
//   - Lengths have no gap. A prompt chunk starts where the one before ended. Decodes come after the
//     whole prompt.
//   - No position is computed without a block, and a block is written only while one table holds it
//     (G1: no block has two writers).
//   - No plan exceeds the step budget (G5).
//   - A recurrent sequence with a cached prefix continues from a snapshot of the same length.
//   - Plans follow the RowRules.
//
// Pure: no threads, no clock.
#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "shard/service/row_rules.h"
#include "shard/service/start_checks.h"

namespace penstock::shard {

class PlanChecker {
 public:
  explicit PlanChecker(PlanBounds bounds);

  // Checks `plan` and updates the state. After an error the state is undefined until Reset.
  absl::Status Check(const StepPlan& plan);

  // Updates the state by the result of the last checked plan. INTERNAL: a bug of the engine.
  // `assumed`: Assume was called, so only which sequences have ended is taken from the result.
  absl::Status Observe(const StepPlan& plan, const StepResult& result, bool assumed = false);

  // For steps that run ahead: after Check, counts what the plan commits as committed. Their results
  // come in order.
  void Assume(const StepPlan& plan);

  // All slots free; the next step is 1.
  void Reset();

 private:
  struct Table {
    std::vector<BlockId> blocks;
    std::size_t passed = 0;  // entries that lie before the window
    std::span<const BlockId> held() const { return std::span(blocks).subspan(passed); }
  };
  struct Slot {
    SequenceId sequence;
    std::uint32_t prompt_length = 0;
    std::uint32_t computed = 0;   // positions of the prompt in plans so far
    std::uint32_t committed = 0;  // by results; in the prompt: as `computed`
    bool finished = false;
    bool grammar = false;
    bool selection_pending = false;  // its decodes compute no row
    std::uint32_t candidates = 0;    // rows of each decode; 0: no contrastive search
    // Most positions that a decode of `rows` rows writes and commits.
    std::uint32_t Writes(std::uint32_t rows) const { return candidates > 0 ? 1 : rows; }
    std::uint32_t restores = 0;  // the length of the snapshot that it must restore
    std::vector<Table> tables;   // per kv_group
  };

  absl::Status CheckHeader(const StepPlan& plan);
  absl::Status ApplyEnds(const StepPlan& plan);
  absl::Status ApplyStarts(const StepPlan& plan);
  absl::Status ApplyBlockOps(const StepPlan& plan);
  absl::Status ApplyAppend(const BlockOp& op);
  absl::Status ApplyCopy(const BlockOp& op) const;
  absl::Status ApplyRestore(const BlockOp& op);
  absl::Status CheckRestored(const StepPlan& plan) const;
  absl::Status ApplySaves(const StepPlan& plan);
  absl::Status CheckSnapshot(BlockId snapshot, const char* field) const;
  absl::Status ApplySegments(const StepPlan& plan);
  absl::Status ApplyPrompt(const Segment& segment, Slot& slot);
  absl::Status CheckDecode(const Segment& segment, const Slot& slot) const;
  absl::Status CheckWritable(const Slot& slot, std::uint32_t first, std::uint32_t count,
                             const char* field) const;
  absl::Status CheckGroups(const StepPlan& plan) const;
  absl::Status ApplyRows(const StepPlan& plan);
  absl::Status ObserveSequence(const SequenceResult& result, const Segment& segment, bool assumed);

  absl::Status FindActive(SlotId id, const char* field, Slot** slot);
  absl::Status CheckBlock(std::uint32_t group, BlockId block, const char* field) const;
  void FreeBlocks(Slot& slot);
  // Entries of a sequence's table in group 1 that lie before the window of its next row.
  std::size_t EntriesBefore(const Slot& slot) const;
  void LeaveWindows();

  PlanBounds bounds_;
  std::uint64_t next_step_ = 1;
  std::vector<std::optional<Slot>> slots_;
  RowRules rows_;
  std::unordered_set<std::uint64_t> sequences_;
  std::vector<std::uint32_t> snapshots_;  // by snapshot: positions of its text; 0: none was saved
  // By KV group and block: how many tables hold it.
  std::array<std::vector<std::uint32_t>, kMostKvGroups> block_uses_;
};

}  // namespace penstock::shard
