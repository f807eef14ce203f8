// The step that the model composes for a group, and its comparison with the core's plan.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/output.h"
#include "sim/model/decode_partition.h"
#include "sim/model/model_sequence.h"
#include "sim/model/step_times.h"

namespace penstock::sim {

// Maps the core's number of a block to the model's.
using BlockNames = std::map<StoreBlock, BlockId>;

struct ModelStep {
  struct Rows {  // of a sequence
    SequenceId sequence;
    bool prompt = false;
    std::uint32_t first = 0;
    std::uint32_t count = 0;  // prompt tokens, or decode rows
    Segment::Logits logits = Segment::Logits::kNone;
    std::uint32_t most_tokens = 0;  // that they can yield
  };
  struct Start {
    SequenceId sequence;
    RequestId request;
    std::uint32_t cached = 0;
  };
  struct BlockChange {
    SequenceId sequence;
    StoreBlock block = 0;
    bool drawn = false;                 // the core chose its number now
    std::optional<StoreBlock> copy_of;  // the block is a copy, instead of appended
    std::optional<BlockOp::Kind> kind;  // of a state, instead of a block
    StoreSnapshot snapshot = 0;
    bool in_window = false;  // a block of KV group 1
    bool none = false;       // before the window: the entry has no block
  };
  struct Group {
    std::vector<std::uint32_t> segments;
    std::vector<SequenceId> rows;  // padded KV layout
    std::uint64_t width = 0;
  };

  StepId step;
  std::uint32_t tokens_left = 0;
  std::uint32_t prefill_left = 0;
  StepWork work;
  bool admitted = false;
  std::vector<SequenceId> ends;
  std::vector<Start> starts;
  std::vector<BlockChange> blocks;
  std::vector<Rows> segments;
  std::vector<Group> groups;
  scheduler::StepInfo info;
};

// Knows which sequence is on a slot, and which number the core gave a block.
class PlanComparison {
 public:
  // Throws a Difference unless the plan and its information are those of the model's step.
  void Compare(const ModelStep& step, Epoch epoch, const scheduler::PlanOut& out,
               const scheduler::StepInfo& info);

 private:
  SequenceId OnSlot(SlotId slot) const;
  void CompareEnds(const ModelStep& step, const StepPlan& plan);
  void CompareStarts(const ModelStep& step, const scheduler::PlanOut& out);
  void CompareBlocks(const ModelStep& step, const StepPlan& plan);
  void CompareState(const ModelStep::BlockChange& model, const BlockOp& op);
  void CompareSegments(const ModelStep& step, const StepPlan& plan) const;
  void CompareGroups(const ModelStep& step, const StepPlan& plan) const;

  std::map<SlotId, SequenceId> slots_;
  BlockNames names_[2];                         // by KV group
  std::map<StoreSnapshot, BlockId> snapshots_;  // by the core's number
};

}  // namespace penstock::sim
