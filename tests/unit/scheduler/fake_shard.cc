#include "tests/unit/scheduler/fake_shard.h"

#include <algorithm>
#include <set>

namespace penstock::scheduler {
namespace {

std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

std::uint64_t Hash(TokenId first, std::uint32_t k, std::uint32_t salt) {
  return Mix(Mix(static_cast<std::uint64_t>(first) << 32 | k) + salt);
}

}  // namespace

TokenId FakeShard::TokenAt(TokenId first, std::uint32_t k) {
  return static_cast<TokenId>(10 + Hash(first, k, 1) % 1000);
}

std::optional<std::uint32_t> FakeShard::EosPosition(TokenId first, std::uint32_t limit) const {
  if (options_.eos_one_in == 0) return std::nullopt;
  for (std::uint32_t k = 0; k < limit; ++k) {
    if (Hash(first, k, 2) % options_.eos_one_in == 0) return k + 1;
  }
  return std::nullopt;
}

void FakeShard::Complain(const StepPlan& plan, const std::string& what) {
  violations_.push_back("step " + std::to_string(plan.step.value()) + ": " + what);
}

StepResult FakeShard::Execute(const StepPlan& plan) {
  if (plan.step.value() != last_step_.value() + 1) Complain(plan, "steps are gapless");
  last_step_ = plan.step;
  ApplyEnds(plan);
  ApplyStarts(plan);
  ApplyBlockOps(plan);
  StepResult result;
  result.epoch = plan.epoch;
  result.step = plan.step;
  std::set<SlotId> named;
  for (const Segment& segment : plan.segments) {
    const auto it = slots_.find(segment.slot);
    if (it == slots_.end() || !named.insert(segment.slot).second) {
      Complain(plan, "a segment names a started slot, once");
      continue;
    }
    const bool prompt = segment.kind == Segment::Kind::kPrompt;
    result.sequences.push_back(prompt ? RunPrompt(plan, segment, it->second)
                                      : RunDecode(plan, segment, it->second));
  }
  return result;
}

void FakeShard::ApplyEnds(const StepPlan& plan) {
  for (const SlotId slot : plan.ends) {
    const auto it = slots_.find(slot);
    if (it == slots_.end()) {
      Complain(plan, "ends name a started slot");
      continue;
    }
    for (const BlockId block : it->second.table) owner_.erase(block);
    slots_.erase(it);
  }
}

void FakeShard::ApplyStarts(const StepPlan& plan) {
  for (const SequenceStart& start : plan.starts) {
    if (start.slot.value() >= capacity_.slots) Complain(plan, "the slot exists");
    if (start.prompt.size() != start.prompt_length) Complain(plan, "the prompt is complete");
    Slot slot;
    slot.start = start;
    if (!slots_.emplace(start.slot, slot).second) Complain(plan, "a start needs a free slot");
  }
}

void FakeShard::ApplyBlockOps(const StepPlan& plan) {
  for (const BlockOp& op : plan.block_ops) {
    const auto it = slots_.find(op.slot);
    if (op.kind != BlockOp::Kind::kAppend || it == slots_.end()) {
      Complain(plan, "a block op names a started slot");
      continue;
    }
    if (op.dst.value() >= capacity_.blocks) Complain(plan, "the block exists");
    if (!owner_.emplace(op.dst, op.slot).second) Complain(plan, "no block has two writers");
    it->second.table.push_back(op.dst);
  }
}

void FakeShard::NeedBlocks(const StepPlan& plan, const Slot& slot, std::uint32_t positions) {
  if (positions > slot.table.size() * capacity_.block_size) {
    Complain(plan, "rows are written inside the sequence's blocks");
  }
  if (positions > capacity_.max_sequence_length) Complain(plan, "the longest sequence is kept");
}

SequenceResult FakeShard::RunPrompt(const StepPlan& plan, const Segment& segment, Slot& slot) {
  if (segment.first != slot.computed) Complain(plan, "chunks follow each other");
  slot.computed = segment.first + segment.count;
  if (slot.computed > slot.start.prompt_length) Complain(plan, "a chunk ends in the prompt");
  NeedBlocks(plan, slot, slot.computed);
  SequenceResult result;
  result.slot = segment.slot;
  result.sequence = slot.start.sequence;
  result.committed_length = slot.computed;
  const bool last = slot.computed == slot.start.prompt_length;
  const Segment::Logits wrong = last ? Segment::Logits::kNone : Segment::Logits::kLast;
  if (segment.logits == wrong) Complain(plan, "the last chunk, and only it, samples");
  if (segment.logits == Segment::Logits::kAll) {
    for (std::uint32_t i = 0; i + (last ? 1 : 0) < segment.count; ++i) {
      result.prompt_logprobs.push_back(-static_cast<float>(segment.first + i + 1));
    }
  }
  const std::uint32_t errors = options_.error_one_in;
  if (errors > 0 && Hash(slot.start.prompt[0], 0, 3) % errors == 0) {
    slot.finished = true;
    result.finish = ShardFinish::kError;
    result.error = "the shard gave up";
  } else if (last) {
    Sample(slot, 1, result);
  }
  return result;
}

SequenceResult FakeShard::RunDecode(const StepPlan& plan, const Segment& segment, Slot& slot) {
  if (slot.computed < slot.start.prompt_length) Complain(plan, "a decode follows the whole prompt");
  SequenceResult result;
  result.slot = segment.slot;
  result.sequence = slot.start.sequence;
  if (slot.finished) return result;
  if (slot.generated + segment.max_rows > slot.start.max_new_tokens) {
    Complain(plan, "no decode row beyond max_new_tokens");
  }
  NeedBlocks(plan, slot, slot.start.prompt_length + slot.generated - 1 + segment.max_rows);
  std::uint32_t count = segment.max_rows;
  if (options_.variable_rows) {
    count = Hash(slot.start.prompt[0], static_cast<std::uint32_t>(plan.step.value()), 4) %
            (segment.max_rows + 1);
  }
  Sample(slot, count, result);
  return result;
}

void FakeShard::Sample(Slot& slot, std::uint32_t count, SequenceResult& result) {
  const TokenId first = slot.start.prompt[0];
  const std::optional<std::uint32_t> eos = EosPosition(first, slot.start.max_new_tokens);
  for (; count > 0 && !slot.finished; --count) {
    ++slot.generated;
    const bool is_eos = eos && slot.generated == *eos;
    SampledToken token;
    token.token = is_eos ? kEosToken : TokenAt(first, slot.generated - 1);
    result.tokens.push_back(token);
    if (is_eos) {
      slot.finished = true;
      result.finish = ShardFinish::kEos;
    }
  }
  result.committed_length = slot.start.prompt_length + slot.generated - 1;
}

}  // namespace penstock::scheduler
