#include "shard/service/plan_checker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/status.h"

namespace penstock::shard {
namespace {

std::string Of(SlotId slot) { return " (slot " + std::to_string(slot.value()) + ")"; }

std::string OfSequence(SequenceId sequence) {
  return " (sequence " + std::to_string(sequence.value()) + ")";
}

// A bug of this engine, not of the router.
absl::Status EngineMistake(const char* field, std::uint64_t value, const std::string& limit) {
  return absl::InternalError(Message(Bad(field, value, limit)));
}

}  // namespace

PlanChecker::PlanChecker(PlanBounds bounds) : bounds_(std::move(bounds)) { Reset(); }

void PlanChecker::Reset() {
  next_step_ = 1;
  slots_.assign(bounds_.slots, std::nullopt);
  sequences_.clear();
  rows_ = RowRules(bounds_.slots, bounds_.cells);
  snapshots_.assign(bounds_.snapshots, 0);
  for (std::uint32_t group = 0; group < kMostKvGroups; ++group) {
    block_uses_[group].assign(bounds_.blocks[group], 0);
  }
}

absl::Status PlanChecker::Check(const StepPlan& plan) {
  PENSTOCK_RETURN_IF_ERROR(CheckHeader(plan));
  PENSTOCK_RETURN_IF_ERROR(ApplyEnds(plan));
  PENSTOCK_RETURN_IF_ERROR(ApplyStarts(plan));
  PENSTOCK_RETURN_IF_ERROR(ApplyBlockOps(plan));
  PENSTOCK_RETURN_IF_ERROR(CheckRestored(plan));
  PENSTOCK_RETURN_IF_ERROR(ApplyRows(plan));
  PENSTOCK_RETURN_IF_ERROR(ApplySegments(plan));
  PENSTOCK_RETURN_IF_ERROR(ApplySaves(plan));
  PENSTOCK_RETURN_IF_ERROR(CheckGroups(plan));
  return rows_.CheckSegments(plan);
}

absl::Status PlanChecker::CheckHeader(const StepPlan& plan) {
  if (plan.epoch != bounds_.epoch) {
    return Bad("epoch", plan.epoch.value(),
               std::to_string(bounds_.epoch.value()) + ", that of Configure");
  }
  if (plan.step.value() != next_step_) {
    return Bad("step", plan.step.value(), std::to_string(next_step_) + ", the next step");
  }
  ++next_step_;
  return absl::OkStatus();
}

absl::Status PlanChecker::ApplyEnds(const StepPlan& plan) {
  for (SlotId id : plan.ends) {
    Slot* slot = nullptr;
    PENSTOCK_RETURN_IF_ERROR(FindActive(id, "ends", &slot));
    sequences_.erase(slot->sequence.value());
    FreeBlocks(*slot);
    rows_.End(id);
    slots_[id.value()].reset();
  }
  return absl::OkStatus();
}

absl::Status PlanChecker::ApplyStarts(const StepPlan& plan) {
  for (const SequenceStart& start : plan.starts) {
    if (start.slot.value() >= slots_.size()) {
      return Bad("starts.slot", start.slot.value(), "below " + std::to_string(slots_.size()));
    }
    if (slots_[start.slot.value()].has_value()) {
      return Bad("starts.slot", start.slot.value(), "a free slot");
    }
    PENSTOCK_RETURN_IF_ERROR(CheckStart(start, bounds_));
    if (!sequences_.insert(start.sequence.value()).second) {
      return Bad("starts.sequence", start.sequence.value(), "an id that no other slot has");
    }
    Slot slot;
    slot.sequence = start.sequence;
    slot.prompt_length = start.prompt_length;
    slot.computed = start.cached_length;
    slot.committed = start.cached_length;
    if (bounds_.snapshots > 0) slot.restores = start.cached_length;
    slot.grammar = !start.grammar.empty();
    slot.candidates = start.sampling.Candidates();
    slot.tables.resize(bounds_.kv_groups);
    slots_[start.slot.value()] = std::move(slot);
  }
  return absl::OkStatus();
}

// A plan's rows begin where the rows before it ended, so its own rows decide what it may give away.
std::size_t PlanChecker::EntriesBefore(const Slot& slot) const {
  return FirstVisible(bounds_.window, slot.committed) / bounds_.block_size;
}

void PlanChecker::LeaveWindows() {
  if (bounds_.window == 0) return;
  for (auto& slot : slots_) {
    if (!slot.has_value()) continue;
    Table& table = slot->tables[1];
    const std::size_t end = std::min(EntriesBefore(*slot), table.blocks.size());
    for (; table.passed < end; ++table.passed) {
      const BlockId block = table.blocks[table.passed];
      if (block != kNoBlock) --block_uses_[1][block.value()];
    }
  }
}

absl::Status PlanChecker::ApplyBlockOps(const StepPlan& plan) {
  LeaveWindows();
  for (const BlockOp& op : plan.block_ops) {
    if (op.kv_group >= bounds_.kv_groups) {
      return Bad("block_ops.kv_group", op.kv_group, "below " + std::to_string(bounds_.kv_groups));
    }
    switch (op.kind) {
      case BlockOp::Kind::kAppend:
        PENSTOCK_RETURN_IF_ERROR(ApplyAppend(op));
        break;
      case BlockOp::Kind::kCopy:
        PENSTOCK_RETURN_IF_ERROR(ApplyCopy(op));
        break;
      case BlockOp::Kind::kRestoreState:
        PENSTOCK_RETURN_IF_ERROR(ApplyRestore(op));
        break;
      case BlockOp::Kind::kSaveState:
        break;  // after the segments
    }
  }
  return absl::OkStatus();
}

absl::Status PlanChecker::ApplyRestore(const BlockOp& op) {
  Slot* slot = nullptr;
  PENSTOCK_RETURN_IF_ERROR(FindActive(op.slot, "block_ops.slot", &slot));
  PENSTOCK_RETURN_IF_ERROR(CheckSnapshot(op.src, "block_ops.src"));
  const std::uint32_t saved = snapshots_[op.src.value()];
  if (slot->restores == 0 || saved != slot->restores) {
    return Bad("block_ops.src", op.src.value(),
               "a snapshot of the " + std::to_string(slot->restores) +
                   " cached positions that the plan starts with, not of " + std::to_string(saved) +
                   Of(op.slot));
  }
  slot->restores = 0;
  return absl::OkStatus();
}

absl::Status PlanChecker::CheckRestored(const StepPlan& plan) const {
  for (const SequenceStart& start : plan.starts) {
    if (slots_[start.slot.value()]->restores == 0) continue;
    return Bad("starts.cached_length", start.cached_length,
               "that of a snapshot which the plan restores" + Of(start.slot));
  }
  return absl::OkStatus();
}

// A slot that has finished is not computed, so its state is older.
absl::Status PlanChecker::ApplySaves(const StepPlan& plan) {
  for (const BlockOp& op : plan.block_ops) {
    if (op.kind != BlockOp::Kind::kSaveState) continue;
    Slot* slot = nullptr;
    PENSTOCK_RETURN_IF_ERROR(FindActive(op.slot, "block_ops.slot", &slot));
    PENSTOCK_RETURN_IF_ERROR(CheckSnapshot(op.dst, "block_ops.dst"));
    const bool computed =
        std::any_of(plan.segments.begin(), plan.segments.end(), [&op](const Segment& segment) {
          return segment.slot == op.slot && segment.kind == Segment::Kind::kPrompt;
        });
    if (!computed || slot->finished) {
      return Bad("block_ops.slot", op.slot.value(), "a slot whose prompt the plan computes");
    }
    snapshots_[op.dst.value()] = slot->computed;
  }
  return absl::OkStatus();
}

absl::Status PlanChecker::ApplyAppend(const BlockOp& op) {
  Slot* slot = nullptr;
  PENSTOCK_RETURN_IF_ERROR(FindActive(op.slot, "block_ops.slot", &slot));
  Table& table = slot->tables[op.kv_group];
  const bool before = op.kv_group == 1 && table.blocks.size() < EntriesBefore(*slot);
  if (!before || op.dst != kNoBlock) {
    PENSTOCK_RETURN_IF_ERROR(CheckBlock(op.kv_group, op.dst, "block_ops.dst"));
  }
  const std::uint64_t longest =
      (std::uint64_t{bounds_.max_sequence_length} + bounds_.block_size - 1) / bounds_.block_size;
  if (table.blocks.size() >= longest) {
    return Bad("block_ops.dst", op.dst.value(),
               "one of at most " + std::to_string(longest) + " blocks of a sequence" + Of(op.slot));
  }
  const std::span<const BlockId> held = table.held();
  if (std::find(held.begin(), held.end(), op.dst) != held.end()) {
    return Bad("block_ops.dst", op.dst.value(),
               "a block that the table does not hold yet" + Of(op.slot));
  }
  table.blocks.push_back(op.dst);
  if (before) {
    ++table.passed;
  } else {
    ++block_uses_[op.kv_group][op.dst.value()];
  }
  return absl::OkStatus();
}

absl::Status PlanChecker::ApplyCopy(const BlockOp& op) const {
  PENSTOCK_RETURN_IF_ERROR(CheckBlock(op.kv_group, op.src, "block_ops.src"));
  PENSTOCK_RETURN_IF_ERROR(CheckBlock(op.kv_group, op.dst, "block_ops.dst"));
  if (op.src == op.dst) return Bad("block_ops.dst", op.dst.value(), "another block than src");
  if (block_uses_[op.kv_group][op.dst.value()] > 1) {
    return Bad("block_ops.dst", op.dst.value(), "a block of one table: a copy writes it");
  }
  return absl::OkStatus();
}

absl::Status PlanChecker::ApplySegments(const StepPlan& plan) {
  std::uint64_t rows = 0, drafts = 0;
  std::unordered_set<std::uint32_t> seen;
  for (const Segment& segment : plan.segments) {
    const bool prompt = segment.kind == Segment::Kind::kPrompt;
    const char* field = prompt ? "segments.prompt.slot" : "segments.decode.slot";
    Slot* slot = nullptr;
    PENSTOCK_RETURN_IF_ERROR(FindActive(segment.slot, field, &slot));
    if (!seen.insert(segment.slot.value()).second) {
      return Bad(field, segment.slot.value(), "named by one segment of a plan only");
    }
    PENSTOCK_RETURN_IF_ERROR(prompt ? ApplyPrompt(segment, *slot) : CheckDecode(segment, *slot));
    rows += segment.Rows();
    if (!prompt && slot->candidates == 0) drafts += segment.max_rows - 1;
  }
  if (drafts >= kVerifiedRows) {
    return Bad("segments.decode.max_rows", drafts,
               "below " + std::to_string(kVerifiedRows) + " drafts of all segments");
  }
  if (rows > bounds_.max_step_tokens) {
    return Bad("segments", rows,
               "at most max_step_tokens " + std::to_string(bounds_.max_step_tokens) + " rows");
  }
  return absl::OkStatus();
}

absl::Status PlanChecker::ApplyPrompt(const Segment& segment, Slot& slot) {
  if (segment.first != slot.computed) {
    return Bad("segments.prompt.first", segment.first,
               std::to_string(slot.computed) + ", where the prompt was left" + Of(segment.slot));
  }
  const std::uint32_t rest = slot.prompt_length - std::min(slot.computed, slot.prompt_length);
  if (segment.count == 0 || segment.count > rest) {
    return Bad("segments.prompt.count", segment.count,
               "from 1 to " + std::to_string(rest) + ", the rest of the prompt" + Of(segment.slot));
  }
  const bool whole = segment.count == rest;
  if (whole && segment.logits == Segment::Logits::kNone) {
    return BadValue("segments.prompt.logits", "none",
                    "last or all in the last chunk of a prompt" + Of(segment.slot));
  }
  if (!whole && segment.logits == Segment::Logits::kLast) {
    return BadValue("segments.prompt.logits", "last",
                    "none or all before the last chunk of a prompt" + Of(segment.slot));
  }
  if (!slot.finished) {
    PENSTOCK_RETURN_IF_ERROR(
        CheckWritable(slot, segment.first, segment.count, "segments.prompt.count"));
  }
  slot.computed += segment.count;
  slot.committed = slot.computed;
  return absl::OkStatus();
}

absl::Status PlanChecker::CheckDecode(const Segment& segment, const Slot& slot) const {
  if (slot.candidates > 0) {
    if (segment.max_rows != slot.candidates) {
      return Bad("segments.decode.max_rows", segment.max_rows,
                 std::to_string(slot.candidates) + ", one for each candidate" + Of(segment.slot));
    }
  } else if (segment.max_rows == 0 || segment.max_rows > bounds_.max_decode_rows) {
    return Bad("segments.decode.max_rows", segment.max_rows,
               "from 1 to max_decode_rows " + std::to_string(bounds_.max_decode_rows));
  }
  if (slot.computed < slot.prompt_length) {
    return Bad("segments.decode.slot", segment.slot.value(),
               "a slot whose whole prompt was computed: " + std::to_string(slot.computed) + " of " +
                   std::to_string(slot.prompt_length) + " tokens were");
  }
  if (slot.finished || slot.selection_pending) return absl::OkStatus();
  const std::uint32_t writes = slot.Writes(segment.max_rows);
  const std::uint64_t end = std::uint64_t{slot.committed} + writes;
  if (end > bounds_.max_sequence_length) {
    return Bad("segments.decode.max_rows", segment.max_rows,
               "within max_sequence_length " + std::to_string(bounds_.max_sequence_length) +
                   " from committed length " + std::to_string(slot.committed) + Of(segment.slot));
  }
  if (rows_.Has(segment.slot)) return rows_.CheckWrite(segment, slot.committed, end);
  return CheckWritable(slot, slot.committed, writes, "segments.decode.max_rows");
}

absl::Status PlanChecker::CheckWritable(const Slot& slot, std::uint32_t first, std::uint32_t count,
                                        const char* field) const {
  const std::uint32_t last_index = (first + count - 1) / bounds_.block_size;
  for (std::uint32_t group = 0; group < slot.tables.size(); ++group) {
    const std::vector<BlockId>& table = slot.tables[group].blocks;
    if (last_index >= table.size()) {
      return Bad(field, count,
                 "within the " + std::to_string(table.size()) +
                     " blocks of the table from position " + std::to_string(first) +
                     OfSequence(slot.sequence));
    }
    for (std::uint32_t index = first / bounds_.block_size; index <= last_index; ++index) {
      if (block_uses_[group][table[index].value()] == 1) continue;
      return Bad(field, count,
                 "within blocks that no other table holds; entry " + std::to_string(index) +
                     " is shared" + OfSequence(slot.sequence));
    }
  }
  return absl::OkStatus();
}

absl::Status PlanChecker::ApplyRows(const StepPlan& plan) {
  rows_.BeginPlan();
  for (const SegmentGroup& group : plan.groups) {
    for (const SlotId id : group.rows) {
      Slot* slot = nullptr;
      PENSTOCK_RETURN_IF_ERROR(FindActive(id, "groups.rows", &slot));
      if (slot->computed < slot->prompt_length) {
        return Bad("groups.rows", id.value(), "a slot whose whole prompt was computed");
      }
      if (!rows_.Has(id)) FreeBlocks(*slot);
      PENSTOCK_RETURN_IF_ERROR(rows_.Place(id, group.width, slot->committed));
    }
  }
  return rows_.EndPlan();
}

absl::Status PlanChecker::CheckGroups(const StepPlan& plan) const {
  if (plan.groups.empty()) return absl::OkStatus();
  std::vector<bool> named(plan.segments.size(), false);
  std::size_t count = 0;
  for (const SegmentGroup& group : plan.groups) {
    for (std::uint32_t index : group.segments) {
      if (index >= named.size() || named[index]) {
        return Bad("groups.segments", index,
                   "an index of segments (below " + std::to_string(named.size()) + "), named once");
      }
      named[index] = true;
      ++count;
    }
  }
  if (count == named.size()) return absl::OkStatus();
  return Bad("groups.segments", count, "all " + std::to_string(named.size()) + " segments");
}

// Prompts count as committed after Check already.
void PlanChecker::Assume(const StepPlan& plan) {
  for (const Segment& segment : plan.segments) {
    Slot& slot = *slots_[segment.slot.value()];
    if (segment.kind == Segment::Kind::kDecode && !slot.finished) slot.committed += 1;
  }
}

absl::Status PlanChecker::Observe(const StepPlan& plan, const StepResult& result, bool assumed) {
  std::size_t next = 0;
  for (const Segment& segment : plan.segments) {
    if (!slots_[segment.slot.value()].has_value()) {
      return Bad("ends", segment.slot.value(), "a slot of which every result has been sent");
    }
    if (slots_[segment.slot.value()]->finished) continue;
    if (next >= result.sequences.size()) {
      return EngineMistake("sequences", result.sequences.size(), "one per unfinished segment");
    }
    PENSTOCK_RETURN_IF_ERROR(ObserveSequence(result.sequences[next++], segment, assumed));
  }
  if (next == result.sequences.size()) return absl::OkStatus();
  return EngineMistake("sequences", result.sequences.size(), "one per unfinished segment");
}

absl::Status PlanChecker::ObserveSequence(const SequenceResult& result, const Segment& segment,
                                          bool assumed) {
  Slot& slot = *slots_[segment.slot.value()];
  if (result.slot != segment.slot || result.sequence != slot.sequence) {
    return EngineMistake("sequences.slot", result.slot.value(),
                         std::to_string(segment.slot.value()) + ", in the order of segments");
  }
  slot.finished = result.finish != ShardFinish::kNone;
  if (assumed) return absl::OkStatus();
  const bool decode = segment.kind == Segment::Kind::kDecode;
  // With contrastive search only the result tells whether the decode had candidates.
  const bool no_token = slot.grammar && result.tokens.empty();
  const bool computes = decode && !slot.selection_pending && !(no_token && slot.candidates > 0);
  const std::uint32_t least = computes ? slot.committed + 1 : slot.committed;
  if (result.finish == ShardFinish::kError) {
    slot.committed = least;  // where the driver expects its next row to begin
    return absl::OkStatus();
  }
  const std::uint32_t most =
      computes ? slot.committed + slot.Writes(segment.max_rows) : slot.committed;
  if (result.committed_length < least || result.committed_length > most) {
    return EngineMistake(
        "sequences.committed_length", result.committed_length,
        "from " + std::to_string(least) + " to " + std::to_string(most) + Of(segment.slot));
  }
  // Every computed row gives a token, but for the last one if its mask is late.
  const std::uint32_t rows = computes ? result.committed_length - slot.committed : 1;
  slot.committed = result.committed_length;
  slot.selection_pending = slot.grammar && result.tokens.size() < rows && slot.candidates == 0 &&
                           slot.computed == slot.prompt_length;
  return absl::OkStatus();
}

absl::Status PlanChecker::FindActive(SlotId id, const char* field, Slot** slot) {
  if (id.value() >= slots_.size()) {
    return Bad(field, id.value(), "below " + std::to_string(slots_.size()));
  }
  if (!slots_[id.value()].has_value()) return Bad(field, id.value(), "a slot that was started");
  *slot = &*slots_[id.value()];
  return absl::OkStatus();
}

absl::Status PlanChecker::CheckBlock(std::uint32_t group, BlockId block, const char* field) const {
  if (block.value() < bounds_.blocks[group]) return absl::OkStatus();
  return Bad(field, block.value(), "below " + std::to_string(bounds_.blocks[group]));
}

absl::Status PlanChecker::CheckSnapshot(BlockId snapshot, const char* field) const {
  if (snapshot.value() < bounds_.snapshots) return absl::OkStatus();
  return Bad(field, snapshot.value(),
             "below the " + std::to_string(bounds_.snapshots) + " snapshots");
}

void PlanChecker::FreeBlocks(Slot& slot) {
  for (std::uint32_t group = 0; group < slot.tables.size(); ++group) {
    Table& table = slot.tables[group];
    for (const BlockId block : table.held()) --block_uses_[group][block.value()];
    table = Table();
  }
}

}  // namespace penstock::shard
