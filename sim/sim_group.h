// A simulated replica group. It executes each StepPlan as a shard must, and it records a violation
// for every plan that a real shard could not execute.
//
// KV contents: each position holds the hash of all tokens up to it. A row reads the positions
// before it through its block table. If one of them was overwritten, was never computed or belongs
// to another request, the row samples a wrong token, as a model would, and a violation is recorded.
// In the KV group with a window a row reads the positions of its window only.
// Within a step, all prompt rows are written before any row is read, as a shard does layer by
// layer. So a step may read a prefix that the same plan computes.
//
// Recurrent models: the state of a sequence is the history of its tokens. A sequence that continues
// from a snapshot of another history is a violation.
//
// Padded KV layout: a sequence that joins a sub-batch copies its positions from its blocks to its
// row. It loses the row in the first plan that does not list it.
//
// Time: a step starts when its plan was sent or when the step before it ended, whichever is later.
// `step_time` gives its duration. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/plan/group.h"
#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "sim/token_source.h"

namespace penstock::sim {

// What a segment costs, in the order of StepPlan::segments.
struct SegmentLoad {
  Segment::Kind kind = Segment::Kind::kDecode;
  std::uint32_t rows = 0;
  std::uint32_t context = 0;  // positions before its first row
  bool logits = false;        // it samples, or returns prompt logprobs
};

using StepTimeFunction = std::function<Duration(const StepPlan&, std::span<const SegmentLoad>)>;

struct SimGroupOptions {
  TokenSource tokens;
  // One sequence in this many fails at its first token, and one decode in eight times as many; 0 =
  // none.
  std::uint32_t error_one_in = 0;
  // A decode of r rows yields 0 to r tokens. Its other rows were rejected drafts, and their K and V
  // are written too. If false, the decode yields exactly r tokens.
  bool variable_rows = false;
  bool contents = true;        // whether to keep and check KV contents; costs time in long runs
  StepTimeFunction step_time;  // none: steps take no time
};

class SimGroup {
 public:
  SimGroup(const GroupCapacity& capacity, SimGroupOptions options);

  struct Done {
    StepResult result;
    Time at;  // when the step is done
  };
  Done Execute(const StepPlan& plan, Time sent);
  // For tests that need no clock.
  StepResult Execute(const StepPlan& plan) { return Execute(plan, busy_until_).result; }

  // Whether a sequence with this prompt fails in this group.
  bool Fails(std::span<const TokenId> prompt) const;

  const std::vector<std::string>& violations() const { return violations_; }
  std::uint32_t sequences() const { return static_cast<std::uint32_t>(slots_.size()); }

 private:
  struct Slot {
    SequenceStart start;
    std::uint32_t computed = 0;  // prompt positions, those found in the cache too
    std::uint32_t generated = 0;
    bool finished = false;
    bool selection_pending = false;      // its newest row is computed, its token is not sampled yet
    std::optional<History> kept_logits;  // of that row, or of candidates
    std::vector<BlockId> table;
    std::vector<BlockId> window_table;
    std::vector<History> histories;   // of each position; kept for the window group only
    History written = kEmptyHistory;  // up to the last written position
    TokenId newest = 0;  // sampled; K and V not written yet, except in contrastive search
    std::vector<History> block_ends;  // history at the last position of each full block
    std::vector<History> row;         // padded KV layout: the contents of its row
    std::uint32_t width = 0;          // of the row; 0 = it is in no sub-batch
    bool padded = false;              // it has joined a sub-batch, and stays in the padded layout
  };

  void Complain(const std::string& what);
  void ApplyEnds(const StepPlan& plan);
  void ApplyStarts(const StepPlan& plan);
  void ApplyBlockOps(const StepPlan& plan);
  void ApplyAppend(const BlockOp& op, Slot& slot);
  void ApplyCopy(const BlockOp& op);
  void RestoreStates(const StepPlan& plan);
  void SaveStates(const StepPlan& plan);
  void ApplyRows(const StepPlan& plan);
  void ApplyRow(SlotId id, std::uint32_t width);
  void CheckRowsOfSegments(const StepPlan& plan);
  std::uint32_t Written(const Slot& slot) const;
  History ReadRow(const Slot& slot, std::uint32_t position);
  void WritePrompt(const Segment& segment, Slot& slot);
  void Write(Slot& slot, std::uint32_t position, TokenId token);
  void Store(const Slot& slot, std::uint32_t position, History history);
  // The cell in the window group; null if the entry has no block.
  History* WindowCell(const Slot& slot, std::uint32_t position);
  // What a row at `position` reads of the window group: `right` if that is the sequence's history.
  History ReadWindow(const Slot& slot, std::uint32_t position, History right);
  void WriteDrafts(Slot& slot, std::uint32_t first, std::uint32_t count);
  History Read(const Slot& slot, std::uint32_t position);
  SequenceResult RunPrompt(const Segment& segment, Slot& slot);
  SequenceResult RunDecode(const Segment& segment, Slot& slot);
  SequenceResult RunForced(const Segment& segment, Slot& slot, SequenceResult result);
  // Whether the grammar of the sequence leaves one text now.
  bool IsForced(const Slot& slot) const {
    const bool may = capacity_.forced_tokens > 0 && !slot.start.grammar.empty();
    return may && Mix(slot.written, 7) % 3 > 0;
  }
  SequenceResult RunCandidates(const Segment& segment, Slot& slot, SequenceResult result);
  // Whether a grammar mask is late. It is a function of the sequence and the step.
  bool MaskIsLate(Slot& slot, std::uint32_t position);
  // Whether the token of the row cannot be sampled.
  bool SampleFails(const Slot& slot) const;
  // Samples the token after `position`.
  void Sample(Slot& slot, std::uint32_t position, SequenceResult& result);
  // Any of the reasons that hold. The scheduler knows the length itself.
  ShardFinish FinishOf(const Slot& slot, TokenId token) const;
  SegmentLoad LoadOf(const Segment& segment, const Slot& slot) const;

  GroupCapacity capacity_;
  SimGroupOptions options_;
  Epoch epoch_;
  StepId step_;
  Time busy_until_{};
  std::map<SlotId, Slot> slots_;
  std::vector<History> cells_;         // [blocks][block_size]; 0 = never written
  std::vector<History> snapshots_;     // 0 = never saved
  std::vector<History> window_cells_;  // of the window group
  CellUse cell_use_;                   // of the present step
  std::vector<std::string> violations_;
};

}  // namespace penstock::sim
