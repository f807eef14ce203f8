#include "sim/sim_group.h"

#include <algorithm>
#include <utility>

namespace penstock::sim {
namespace {

bool Contains(const std::vector<TokenId>& tokens, TokenId token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

}  // namespace

SimGroup::SimGroup(const GroupCapacity& capacity, SimGroupOptions options)
    : capacity_(capacity), options_(std::move(options)), snapshots_(capacity.snapshots, 0) {
  if (!options_.contents) return;
  cells_.resize(std::size_t{capacity.blocks} * capacity.block_size);
  window_cells_.resize(std::size_t{capacity.window_blocks} * capacity.block_size);
}

void SimGroup::Complain(const std::string& what) {
  violations_.push_back("step " + std::to_string(step_.value()) + ": " + what);
}

bool SimGroup::Fails(std::span<const TokenId> prompt) const {
  return options_.error_one_in > 0 && Mix(HistoryOf(prompt), 3) % options_.error_one_in == 0;
}

SimGroup::Done SimGroup::Execute(const StepPlan& plan, Time sent) {
  if (plan.step.value() != step_.value() + 1) Complain("steps are gapless");
  if (step_ == StepId(0)) epoch_ = plan.epoch;
  if (plan.epoch != epoch_) Complain("a plan of another epoch");
  step_ = plan.step;
  ApplyEnds(plan);
  ApplyStarts(plan);
  ApplyBlockOps(plan);
  RestoreStates(plan);
  cell_use_ = {};
  if (capacity_.cells > 0) ApplyRows(plan);

  std::vector<std::pair<const Segment*, Slot*>> work;
  std::vector<SegmentLoad> loads;
  std::set<SlotId> named;
  for (const Segment& segment : plan.segments) {
    const auto it = slots_.find(segment.slot);
    if (it == slots_.end() || !named.insert(segment.slot).second) {
      Complain("a segment names a started slot, once");
      continue;
    }
    loads.push_back(LoadOf(segment, it->second));
    work.emplace_back(&segment, &it->second);
    if (segment.kind == Segment::Kind::kPrompt) WritePrompt(segment, it->second);
  }
  Done done;
  done.result.epoch = plan.epoch;
  done.result.step = plan.step;
  for (const auto& [segment, slot] : work) {
    const bool prompt = segment->kind == Segment::Kind::kPrompt;
    done.result.sequences.push_back(prompt ? RunPrompt(*segment, *slot)
                                           : RunDecode(*segment, *slot));
  }
  SaveStates(plan);
  for (const auto& [id, slot] : slots_) {
    if (slot.width > 0) cell_use_.filled += Written(slot);
  }
  done.result.cells = cell_use_;
  const Duration time = options_.step_time ? options_.step_time(plan, loads) : Duration(0);
  busy_until_ = std::max(busy_until_, sent) + time;
  done.result.timings.sample = time / 8;
  done.result.timings.forward = time - done.result.timings.sample;
  done.at = busy_until_;
  return done;
}

SegmentLoad SimGroup::LoadOf(const Segment& segment, const Slot& slot) const {
  SegmentLoad load;
  load.kind = segment.kind;
  load.rows = segment.Rows();
  const bool prompt = segment.kind == Segment::Kind::kPrompt;
  load.context = prompt ? segment.first : slot.start.prompt_length + slot.generated - 1;
  load.logits = !prompt || segment.logits != Segment::Logits::kNone;
  return load;
}

void SimGroup::ApplyEnds(const StepPlan& plan) {
  for (const SlotId slot : plan.ends) {
    if (slots_.erase(slot) == 0) Complain("ends name a started slot");
  }
}

void SimGroup::ApplyStarts(const StepPlan& plan) {
  for (const SequenceStart& start : plan.starts) {
    if (start.slot.value() >= capacity_.slots) Complain("the slot exists");
    if (start.prompt.size() != start.prompt_length) Complain("the prompt is complete");
    if (start.cached_length >= start.prompt_length) Complain("cached_length < prompt_length");
    Slot slot;
    slot.start = start;
    for (std::uint32_t p = 0; p < start.cached_length; ++p) {
      slot.written = Extend(slot.written, start.prompt[p]);
      if (capacity_.window > 0) slot.histories.push_back(slot.written);
      if ((p + 1) % capacity_.block_size == 0) slot.block_ends.push_back(slot.written);
    }
    slot.computed = start.cached_length;
    if (!slots_.emplace(start.slot, std::move(slot)).second) Complain("a start needs a free slot");
  }
}

void SimGroup::ApplyBlockOps(const StepPlan& plan) {
  for (const BlockOp& op : plan.block_ops) {
    if (IsOfState(op.kind)) continue;
    const bool window = op.kv_group == 1 && capacity_.window > 0;
    if (op.kv_group > 0 && !window) Complain("the KV group exists");
    const std::uint32_t blocks = window ? capacity_.window_blocks : capacity_.blocks;
    const bool none = window && op.dst == kNoBlock && op.kind == BlockOp::Kind::kAppend;
    if ((op.dst.value() >= blocks && !none) || op.src.value() >= blocks) {
      Complain("the block exists");
      continue;
    }
    const auto it = slots_.find(op.slot);
    if (op.kind == BlockOp::Kind::kCopy) {
      ApplyCopy(op);
    } else if (it == slots_.end()) {
      Complain("a block op names a started slot");
    } else {
      ApplyAppend(op, it->second);
    }
  }
}

void SimGroup::ApplyCopy(const BlockOp& op) {
  if (cells_.empty()) return;
  std::vector<History>& cells = op.kv_group == 0 ? cells_ : window_cells_;
  const auto size = static_cast<std::ptrdiff_t>(capacity_.block_size);
  std::copy_n(cells.begin() + op.src.value() * size, size, cells.begin() + op.dst.value() * size);
}

void SimGroup::ApplyAppend(const BlockOp& op, Slot& slot) {
  std::vector<BlockId>& table = op.kv_group == 0 ? slot.table : slot.window_table;
  if (op.dst == kNoBlock && !table.empty() && table.back() != kNoBlock) {
    Complain("entries without a block come first");
  }
  table.push_back(op.dst);
}

void SimGroup::RestoreStates(const StepPlan& plan) {
  std::set<SlotId> restored;
  for (const BlockOp& op : plan.block_ops) {
    if (op.kind != BlockOp::Kind::kRestoreState) continue;
    const auto slot = slots_.find(op.slot);
    if (slot == slots_.end() || op.src.value() >= snapshots_.size()) {
      Complain("a started slot restores one of the snapshots");
    } else if (snapshots_[op.src.value()] != slot->second.written) {
      Complain("slot " + std::to_string(op.slot.value()) + " continues from snapshot " +
               std::to_string(op.src.value()) + " of another text");
    }
    restored.insert(op.slot);
  }
  if (capacity_.snapshots == 0) return;
  for (const SequenceStart& start : plan.starts) {
    if ((start.cached_length > 0) != restored.contains(start.slot)) {
      Complain("a start restores a snapshot if its prompt begins with cached blocks");
    }
  }
}

void SimGroup::SaveStates(const StepPlan& plan) {
  for (const BlockOp& op : plan.block_ops) {
    if (op.kind != BlockOp::Kind::kSaveState) continue;
    const auto slot = slots_.find(op.slot);
    const bool computed = std::ranges::any_of(plan.segments, [&op](const Segment& segment) {
      return segment.slot == op.slot && segment.kind == Segment::Kind::kPrompt;
    });
    if (slot == slots_.end() || !computed || op.dst.value() >= snapshots_.size()) {
      Complain("a slot whose prompt is computed is saved to one of the snapshots");
    } else {
      snapshots_[op.dst.value()] = slot->second.written;
    }
  }
}

// The number of positions with K and V.
std::uint32_t SimGroup::Written(const Slot& slot) const {
  if (slot.generated == 0) return slot.computed;
  const bool written = slot.selection_pending || slot.start.sampling.Candidates() > 0;
  const std::uint32_t newest = written ? 0 : 1;
  return slot.start.prompt_length + slot.generated - newest;
}

void SimGroup::ApplyRows(const StepPlan& plan) {
  std::map<SlotId, std::uint32_t> before;
  for (auto& [id, slot] : slots_) {
    before[id] = slot.width;
    slot.width = 0;
  }
  for (const SegmentGroup& group : plan.groups) {
    cell_use_.allocated += group.rows.size() * std::uint64_t{group.width};
    for (const SlotId id : group.rows) ApplyRow(id, group.width);
  }
  for (auto& [id, slot] : slots_) {
    if (slot.padded && slot.width > 0 && before[id] == 0 && !slot.table.empty()) {
      slot.table.clear();
    } else if (slot.padded && slot.width > 0 && before[id] == 0) {
      Complain("a row that left its sub-batch is lost");
    }
    slot.row.resize(cells_.empty() ? 0 : slot.width);
  }
  if (cell_use_.allocated > capacity_.cells) {
    Complain(std::to_string(cell_use_.allocated) + " cells of " + std::to_string(capacity_.cells));
  }
  CheckRowsOfSegments(plan);
}

void SimGroup::ApplyRow(SlotId id, std::uint32_t width) {
  const auto it = slots_.find(id);
  if (it == slots_.end()) return Complain("a row is a started slot");
  Slot& slot = it->second;
  if (slot.width > 0) return Complain("a row is in one sub-batch");
  if (slot.computed < slot.start.prompt_length) Complain("a row has its whole prompt");
  if (Written(slot) > width) Complain("a sub-batch is as wide as its longest row");
  slot.width = width;
  if (slot.padded) return;
  slot.padded = true;
  cell_use_.copied += Written(slot);
  const std::uint32_t size = capacity_.block_size;
  for (std::uint32_t p = 0; p < Written(slot) && !cells_.empty(); ++p) {
    slot.row.push_back(cells_[std::size_t{slot.table[p / size].value()} * size + p % size]);
  }
}

void SimGroup::CheckRowsOfSegments(const StepPlan& plan) {
  for (const SegmentGroup& group : plan.groups) {
    for (const std::uint32_t index : group.segments) {
      if (index >= plan.segments.size()) return Complain("a group names a segment of the plan");
      const SlotId slot = plan.segments[index].slot;
      const bool inside = std::find(group.rows.begin(), group.rows.end(), slot) != group.rows.end();
      const auto it = slots_.find(slot);
      if (it == slots_.end() || it->second.padded == inside) continue;
      Complain("the decodes of a sub-batch are those of its rows");
    }
  }
}

History SimGroup::ReadRow(const Slot& slot, std::uint32_t position) {
  if (cells_.empty()) return slot.written;
  const std::uint32_t size = capacity_.block_size;
  for (std::uint32_t first = 0; first <= position; first += size) {
    const std::uint32_t last = std::min(position, first + size - 1);
    const std::uint32_t block = first / size;
    const History right = block < slot.block_ends.size() ? slot.block_ends[block] : slot.written;
    const History cell = last < slot.row.size() ? slot.row[last] : 0;
    if (cell == right) continue;
    Complain("sequence " + std::to_string(slot.start.sequence.value()) + " reads cell " +
             std::to_string(last) + " of its row, which does not hold its tokens");
    return Mix(cell, slot.written);
  }
  return slot.written;
}

void SimGroup::Write(Slot& slot, std::uint32_t position, TokenId token) {
  slot.written = Extend(slot.written, token);
  const std::uint32_t size = capacity_.block_size;
  if ((position + 1) % size == 0) slot.block_ends.push_back(slot.written);
  if (position >= capacity_.max_sequence_length) Complain("the longest sequence is kept");
  if (slot.padded) {
    if (position >= slot.width) return Complain("rows are written inside their width");
    if (!cells_.empty()) slot.row[position] = slot.written;
    return;
  }
  if (position >= slot.table.size() * size) {
    return Complain("rows are written inside the sequence's blocks");
  }
  if (capacity_.window > 0) slot.histories.push_back(slot.written);
  Store(slot, position, slot.written);
}

// Both groups store K and V of a position.
void SimGroup::Store(const Slot& slot, std::uint32_t position, History history) {
  if (cells_.empty()) return;
  const std::uint32_t size = capacity_.block_size;
  cells_[std::size_t{slot.table[position / size].value()} * size + position % size] = history;
  if (capacity_.window == 0) return;
  History* const cell = WindowCell(slot, position);
  if (cell == nullptr) return Complain("rows are written inside the sequence's window blocks");
  *cell = history;
}

History* SimGroup::WindowCell(const Slot& slot, std::uint32_t position) {
  const std::uint32_t size = capacity_.block_size;
  const std::uint32_t entry = position / size;
  if (entry >= slot.window_table.size() || slot.window_table[entry] == kNoBlock) return nullptr;
  return &window_cells_[std::size_t{slot.window_table[entry].value()} * size + position % size];
}

History SimGroup::ReadWindow(const Slot& slot, std::uint32_t position, History right) {
  if (window_cells_.empty()) return right;
  std::uint32_t read = position + 1 - std::min(position + 1, capacity_.window);
  for (; read <= position; ++read) {
    const History* const cell = WindowCell(slot, read);
    const bool known = cell != nullptr && read < slot.histories.size();
    if (known && *cell == slot.histories[read]) continue;
    Complain("sequence " + std::to_string(slot.start.sequence.value()) + " reads position " +
             std::to_string(read) + " of its window, which does not hold its tokens");
    return Mix(cell == nullptr ? 0 : *cell, right);
  }
  return right;
}

// Writes K and V of rejected drafts, which no later row may read.
void SimGroup::WriteDrafts(Slot& slot, std::uint32_t first, std::uint32_t count) {
  const std::uint32_t size = capacity_.block_size;
  for (std::uint32_t position = first; position < first + count; ++position) {
    if (position >= capacity_.max_sequence_length) Complain("the longest sequence is kept");
    const std::size_t room = slot.padded ? slot.width : slot.table.size() * size;
    if (position >= room) return Complain("drafts are written inside the sequence's blocks");
    if (cells_.empty()) continue;
    const History wrong = Mix(slot.written, position);
    if (slot.padded) {
      slot.row[position] = wrong;
    } else {
      Store(slot, position, wrong);
    }
  }
}

// The history that attention at `position` sees. It is the sequence's own history if every block
// before that position holds it.
History SimGroup::Read(const Slot& slot, std::uint32_t position) {
  const std::uint32_t size = capacity_.block_size;
  if (slot.padded) return ReadRow(slot, position);
  if (cells_.empty() || position >= slot.table.size() * size) return slot.written;
  for (std::uint32_t block = 0; block * size <= position; ++block) {
    const std::uint32_t last = std::min(position, block * size + size - 1);
    const History cell = cells_[std::size_t{slot.table[block].value()} * size + last % size];
    const History right = block < slot.block_ends.size() ? slot.block_ends[block] : slot.written;
    if (cell == right) continue;
    Complain("sequence " + std::to_string(slot.start.sequence.value()) + " reads position " +
             std::to_string(last) + ", which does not hold its tokens");
    return Mix(cell, slot.written);
  }
  return ReadWindow(slot, position, slot.written);
}

void SimGroup::WritePrompt(const Segment& segment, Slot& slot) {
  if (segment.first != slot.computed) Complain("chunks follow each other");
  if (segment.first + segment.count > slot.start.prompt_length || segment.count == 0) {
    return Complain("a chunk ends in the prompt");
  }
  slot.computed = segment.first + segment.count;
  for (std::uint32_t p = segment.first; p < slot.computed; ++p) {
    Write(slot, p, slot.start.prompt[p]);
  }
}

SequenceResult SimGroup::RunPrompt(const Segment& segment, Slot& slot) {
  SequenceResult result;
  result.slot = segment.slot;
  result.sequence = slot.start.sequence;
  ReadWindow(slot, segment.first, slot.written);  // its later rows read what this step writes
  const bool ends = slot.computed == slot.start.prompt_length;
  if (segment.logits == (ends ? Segment::Logits::kNone : Segment::Logits::kLast)) {
    Complain("exactly the chunk that ends the prompt samples");
  }
  if (segment.logits == Segment::Logits::kAll) {
    const std::uint32_t last = ends ? slot.computed - 1 : slot.computed;
    for (std::uint32_t p = segment.first; p < last; ++p) {
      result.prompt_logprobs.push_back(-static_cast<float>(p + 1));
      if (!slot.start.logprobs.prompt_top_n) continue;
      result.prompt_alternatives.push_back({p, {{slot.start.prompt[p], -1.0f}}});
    }
  }
  if (!ends) {
    result.committed_length = slot.computed;
    return result;
  }
  if (Fails(slot.start.prompt)) {
    slot.finished = true;
    result.finish = ShardFinish::kError;
    result.error = "the logits are not numbers";
    return result;
  }
  result.committed_length = slot.computed;
  const bool contrastive = slot.start.sampling.Candidates() > 0;  // finds candidates, no token
  if (contrastive) slot.kept_logits = Read(slot, slot.computed - 1);
  if (!contrastive && !MaskIsLate(slot, slot.computed - 1)) Sample(slot, slot.computed - 1, result);
  return result;
}

// The rows yield one token. Its K and V are written in the same step.
SequenceResult SimGroup::RunCandidates(const Segment& segment, Slot& slot, SequenceResult result) {
  if (segment.max_rows != slot.start.sampling.Candidates()) Complain("one row for each candidate");
  if (slot.computed < slot.start.prompt_length) Complain("a decode follows the prompt");
  const std::uint32_t position = slot.start.prompt_length + slot.generated;
  result.committed_length = position;
  if (MaskIsLate(slot, position - 1)) return result;  // there were no candidates
  Sample(slot, position - 1, result);
  if (result.finish == ShardFinish::kError) return result;
  Write(slot, position, slot.newest);
  slot.kept_logits = Read(slot, position);  // of the next candidates
  result.committed_length = position + 1;
  return result;
}

SequenceResult SimGroup::RunDecode(const Segment& segment, Slot& slot) {
  SequenceResult result;
  result.slot = segment.slot;
  result.sequence = slot.start.sequence;
  if (slot.finished) return result;
  if (slot.start.sampling.Candidates() > 0) return RunCandidates(segment, slot, std::move(result));
  if (slot.selection_pending) {
    const std::uint32_t written = slot.start.prompt_length + slot.generated;
    result.committed_length = written;
    if (!MaskIsLate(slot, written - 1)) Sample(slot, written - 1, result);
    return result;
  }
  if (slot.generated == 0) {
    Complain("a decode follows the prompt");
    return result;
  }
  if (!slot.start.grammar.empty()) return RunForced(segment, slot, std::move(result));
  std::uint32_t rows = segment.max_rows;
  if (options_.variable_rows) {
    rows = static_cast<std::uint32_t>(Mix(slot.written, step_.value()) % (rows + 1));
  }
  const std::uint32_t first = slot.start.prompt_length + slot.generated - 1;
  for (; rows > 0 && !slot.finished; --rows) {
    const std::uint32_t position = slot.start.prompt_length + slot.generated - 1;
    Write(slot, position, slot.newest);
    Sample(slot, position, result);
  }
  result.committed_length = Written(slot);
  const std::uint32_t rejected = segment.max_rows - (result.committed_length - first);
  if (options_.variable_rows) WriteDrafts(slot, result.committed_length, rejected);
  return result;
}

// Forced tokens that are known in time, and then one more token.
SequenceResult SimGroup::RunForced(const Segment& segment, Slot& slot, SequenceResult result) {
  const bool known = Mix(slot.written, step_.value() + 1) % 4 > 0;
  for (std::uint32_t row = 1; !slot.finished; ++row) {
    const std::uint32_t position = slot.start.prompt_length + slot.generated - 1;
    Write(slot, position, slot.newest);
    const bool last = !known || row >= segment.max_rows || !IsForced(slot);
    if (!last || !MaskIsLate(slot, position)) Sample(slot, position, result);
    if (last) break;
  }
  result.committed_length = Written(slot);
  return result;
}

// The shard keeps the logits of the row, so the window may move on before the token is selected.
bool SimGroup::MaskIsLate(Slot& slot, std::uint32_t position) {
  slot.selection_pending = !slot.start.grammar.empty() && Mix(slot.written, step_.value()) % 3 == 0;
  if (slot.selection_pending && !slot.kept_logits) slot.kept_logits = Read(slot, position);
  return slot.selection_pending;
}

bool SimGroup::SampleFails(const Slot& slot) const {
  const std::uint32_t one_in = 8 * options_.error_one_in;
  return one_in > 0 && slot.generated > 0 && Mix(slot.written, 5) % one_in == 0;
}

void SimGroup::Sample(Slot& slot, std::uint32_t position, SequenceResult& result) {
  if (SampleFails(slot)) {
    slot.finished = true;
    result.finish = ShardFinish::kError;
    result.error = "the logits of a decode are not numbers";
    return;
  }
  const bool may_end = !slot.start.ignore_eos && slot.generated >= slot.start.min_new_tokens;
  SampledToken token;
  const std::optional<History> kept = std::exchange(slot.kept_logits, std::nullopt);
  token.token = options_.tokens.After(kept ? *kept : Read(slot, position), may_end);
  token.forced = IsForced(slot);
  if (!token.forced && slot.start.logprobs.kind != LogprobRequest::Kind::kNone) {
    token.logprob = -static_cast<float>(Mix(slot.written, 4) % 64) / 8;
    token.alternatives = {{token.token + 1, token.logprob - 1}};
  }
  slot.newest = token.token;
  ++slot.generated;
  result.finish = FinishOf(slot, token.token);
  slot.finished = result.finish != ShardFinish::kNone;
  result.tokens.push_back(std::move(token));
  result.committed_length = position + 1;
}

ShardFinish SimGroup::FinishOf(const Slot& slot, TokenId token) const {
  const SequenceStart& start = slot.start;
  std::vector<ShardFinish> reasons;
  const bool may_end = slot.generated > start.min_new_tokens;
  if (may_end && token == kEosToken && !start.ignore_eos) reasons.push_back(ShardFinish::kEos);
  if (may_end && Contains(start.stop_token_ids, token)) reasons.push_back(ShardFinish::kStopToken);
  if (start.max_new_tokens > 0 && slot.generated >= start.max_new_tokens) {
    reasons.push_back(ShardFinish::kLength);
    reasons.push_back(ShardFinish::kNone);
  }
  return reasons.empty() ? ShardFinish::kNone : reasons[Mix(slot.written, 6) % reasons.size()];
}

}  // namespace penstock::sim
