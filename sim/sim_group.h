// A simulated replica group: obeys the meaning of a StepPlan to the letter, keeps what each KV
// position holds, and complains about every plan that a real shard could not execute.
//
// KV contents: each position holds the hash of all tokens up to it. A row reads the positions
// before it through its block table; if one is not what the row's own history says (overwritten,
// never computed, another request's), the sampled token comes out wrong, as it would from a model,
// and a violation is noted. Within a step all prompt rows are written before anything is read, as a
// shard does layer by layer, so a prefix that the same plan computes may be read.
//
// In the padded KV layout a row that joins a part takes along what its blocks hold, and loses its
// cells in the first plan that does not list it.
//
// Time: a plan starts when it was sent or when the one before it is done, whichever is later, and
// lasts what `step_time` says. Not synchronised; one owner.
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
  std::uint32_t error_one_in = 0;  // chance that a sequence fails at its first token; 0 = never
  // A decode of r rows yields 0 … r tokens, and what it does not yield were wrong drafts, which
  // have written K/V, too. Else it yields exactly r.
  bool variable_rows = false;
  bool contents = true;        // false: KV contents are not kept (long runs that measure time)
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
  // The result alone, for tests that need no clock.
  StepResult Execute(const StepPlan& plan) { return Execute(plan, busy_until_).result; }

  // Whether a sequence with this prompt fails here.
  bool Fails(std::span<const TokenId> prompt) const;

  const std::vector<std::string>& violations() const { return violations_; }
  std::uint32_t sequences() const { return static_cast<std::uint32_t>(slots_.size()); }
  // Blocks in the tables of all slots.
  std::uint32_t blocks_held() const;

 private:
  struct Slot {
    SequenceStart start;
    std::uint32_t computed = 0;  // prompt positions, those found in the cache too
    std::uint32_t generated = 0;
    bool finished = false;
    bool owes_pick = false;  // its newest row was computed, the token comes later
    std::vector<BlockId> table;
    History written = kEmptyHistory;  // up to the last written position
    TokenId newest = 0;               // sampled, not written yet (contrastive search: written)
    std::vector<History> block_ends;  // history at the last position of each full block
    std::vector<History> row;         // padded KV layout: what its cells hold
    std::uint32_t width = 0;          // of the row; 0: it is in no part
    bool in_cells = false;            // it has joined a part, for good
  };

  void Complain(const std::string& what);
  void ApplyEnds(const StepPlan& plan);
  void ApplyStarts(const StepPlan& plan);
  void ApplyBlockOps(const StepPlan& plan);
  void ApplyBlockOp(const BlockOp& op, Slot& slot);
  void ApplyRows(const StepPlan& plan);
  void ApplyRow(SlotId id, std::uint32_t width);
  void CheckRowsOfSegments(const StepPlan& plan);
  std::uint32_t Written(const Slot& slot) const;
  History ReadRow(const Slot& slot, std::uint32_t position);
  void WritePrompt(const Segment& segment, Slot& slot);
  void Write(Slot& slot, std::uint32_t position, TokenId token);
  void WriteDrafts(Slot& slot, std::uint32_t first, std::uint32_t count);
  History Read(const Slot& slot, std::uint32_t position);
  SequenceResult RunPrompt(const Segment& segment, Slot& slot);
  SequenceResult RunDecode(const Segment& segment, Slot& slot);
  SequenceResult RunCandidates(const Segment& segment, Slot& slot, SequenceResult result);
  // Under a grammar: its mask comes late, as it pleases the sequence.
  bool PutsOff(Slot& slot) const;
  // The token behind `position`.
  void Sample(Slot& slot, std::uint32_t position, SequenceResult& result);
  ShardFinish FinishOf(const Slot& slot, TokenId token) const;
  SegmentLoad LoadOf(const Segment& segment, const Slot& slot) const;

  GroupCapacity capacity_;
  SimGroupOptions options_;
  Epoch epoch_;
  StepId step_;
  Time busy_until_{};
  std::map<SlotId, Slot> slots_;
  std::vector<History> cells_;  // [blocks][block_size]; 0 = never written
  CellUse cell_use_;            // of the present step
  std::vector<std::string> violations_;
};

}  // namespace penstock::sim
