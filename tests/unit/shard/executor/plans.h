// Plans for tests of the executor and the service. The sequence in slot n is 100 + n.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"

namespace penstock::shard::plans {

inline SequenceStart Start(std::uint32_t slot, std::vector<TokenId> prompt) {
  SequenceStart start;
  start.slot = SlotId(slot);
  start.sequence = SequenceId(100 + slot);
  start.prompt = std::move(prompt);
  start.prompt_length = static_cast<std::uint32_t>(start.prompt.size());
  return start;
}
inline Segment Prompt(std::uint32_t slot, std::uint32_t first, std::uint32_t count,
                      Segment::Logits logits = Segment::Logits::kLast) {
  Segment segment;
  segment.kind = Segment::Kind::kPrompt;
  segment.slot = SlotId(slot);
  segment.first = first;
  segment.count = count;
  segment.logits = logits;
  return segment;
}
inline Segment Decode(std::uint32_t slot) {
  Segment segment;
  segment.slot = SlotId(slot);
  return segment;
}
inline BlockOp Append(std::uint32_t slot, std::uint32_t block, std::uint32_t kv_group = 0) {
  BlockOp op;
  op.kv_group = kv_group;
  op.slot = SlotId(slot);
  op.dst = BlockId(block);
  return op;
}
inline BlockOp Save(std::uint32_t slot, std::uint32_t snapshot) {
  BlockOp op;
  op.kind = BlockOp::Kind::kSaveState;
  op.slot = SlotId(slot);
  op.dst = BlockId(snapshot);
  return op;
}
inline BlockOp Restore(std::uint32_t slot, std::uint32_t snapshot) {
  BlockOp op;
  op.kind = BlockOp::Kind::kRestoreState;
  op.slot = SlotId(slot);
  op.src = BlockId(snapshot);
  return op;
}
// A plan that starts one sequence and computes its whole prompt.
inline StepPlan Whole(SequenceStart start, std::uint32_t block = 0) {
  StepPlan plan;
  plan.block_ops = {Append(start.slot.value(), block)};
  plan.segments = {Prompt(start.slot.value(), 0, start.prompt_length)};
  plan.starts = {std::move(start)};
  return plan;
}
inline StepPlan Decodes(std::vector<std::uint32_t> slots) {
  StepPlan plan;
  for (std::uint32_t slot : slots) plan.segments.push_back(Decode(slot));
  return plan;
}

inline std::vector<TokenId> Tokens(const SequenceResult& result) {
  std::vector<TokenId> tokens;
  for (const SampledToken& token : result.tokens) tokens.push_back(token.token);
  return tokens;
}

}  // namespace penstock::shard::plans
