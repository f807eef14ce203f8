// A shard of the tests: obeys the meaning of a StepPlan to the letter and complains about every
// plan that a real shard could not execute. Tokens are a function of (first prompt token,
// position), so a request's output does not depend on its batch mates or on chunking.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/plan/group.h"
#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"

namespace penstock::scheduler {

struct FakeShardOptions {
  std::uint32_t eos_one_in = 0;    // chance of an EOS at each position; 0 = never
  std::uint32_t error_one_in = 0;  // chance that a sequence fails on the shard; 0 = never
  bool variable_rows = false;      // a decode of r rows yields 0 … r tokens, else exactly r
};

class FakeShard {
 public:
  FakeShard(const GroupCapacity& capacity, FakeShardOptions options)
      : capacity_(capacity), options_(options) {}

  // Executes a plan. Violations of the protocol are collected.
  StepResult Execute(const StepPlan& plan);

  const std::vector<std::string>& violations() const { return violations_; }
  std::uint32_t sequences() const { return static_cast<std::uint32_t>(slots_.size()); }
  // Blocks in the tables of all slots.
  std::uint32_t blocks_held() const { return static_cast<std::uint32_t>(owner_.size()); }

  // The k-th output token of a request whose prompt begins with `first`.
  static TokenId TokenAt(TokenId first, std::uint32_t k);
  // Number of tokens until (and with) EOS, if one comes before `limit`.
  std::optional<std::uint32_t> EosPosition(TokenId first, std::uint32_t limit) const;

  static constexpr TokenId kEosToken = 2;

 private:
  struct Slot {
    SequenceStart start;
    std::uint32_t computed = 0;   // prompt tokens
    std::uint32_t generated = 0;  // tokens sampled
    bool finished = false;
    std::vector<BlockId> table;
  };

  void Complain(const StepPlan& plan, const std::string& what);
  void ApplyEnds(const StepPlan& plan);
  void ApplyStarts(const StepPlan& plan);
  void ApplyBlockOps(const StepPlan& plan);
  SequenceResult RunPrompt(const StepPlan& plan, const Segment& segment, Slot& slot);
  SequenceResult RunDecode(const StepPlan& plan, const Segment& segment, Slot& slot);
  void Sample(Slot& slot, std::uint32_t count, SequenceResult& result);
  void NeedBlocks(const StepPlan& plan, const Slot& slot, std::uint32_t positions);

  GroupCapacity capacity_;
  FakeShardOptions options_;
  StepId last_step_;
  std::map<SlotId, Slot> slots_;
  std::map<BlockId, SlotId> owner_;  // no block has two writers
  std::vector<std::string> violations_;
};

}  // namespace penstock::scheduler
