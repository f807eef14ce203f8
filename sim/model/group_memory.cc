#include "sim/model/group_memory.h"

#include <algorithm>
#include <string>

#include "sim/model/decode_partition.h"

namespace penstock::sim {

using scheduler::AdmissionMode;
using scheduler::Batching;
using scheduler::Config;
using scheduler::GroupUp;
using scheduler::Shortage;

namespace {

std::uint32_t RowsOf(const ModelRequest& request) { return std::max(1u, request.candidates()); }

}  // namespace

GroupMemory::GroupMemory(const Config& config, const GroupUp& up, ExpectedLengths& lengths)
    : GroupNeeds(config, up, lengths),
      id_(up.group),
      lengths_(lengths),
      store_(config, up.capacity) {}

std::uint32_t GroupMemory::AvailableBlocks() const {
  std::uint32_t blocks = store_.idle();
  for (const auto& [id, sequence] : sequences_) blocks -= sequence.reserved;
  return blocks;
}

std::uint32_t GroupMemory::AvailableInWindow() const {
  std::uint32_t blocks = store_.window().total();
  for (const auto& [id, sequence] : sequences_) blocks -= sequence.window.claimed();
  return blocks;
}

// --- Admission

// At most all but the last token, whose logits are needed.
StoreMatch GroupMemory::Match(const ModelRequest& request, StepId reader) const {
  if (NeedsEveryRow(request)) return {};
  std::vector<TokenId> tokens = request.Tokens();
  tokens.pop_back();
  return store_.Find(RootOf(request), tokens, reader);
}

// Blocks of the match that cost nothing, since sequences hold them.
std::uint32_t GroupMemory::BlocksInUse(const StoreMatch& match) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      match.blocks, [this](StoreBlock block) { return !store_.IsIdle(block); }));
}

// Besides those that run and the others.
std::optional<Shortage> GroupMemory::WhyNotBeside(const ModelRequest& request,
                                                  const std::vector<const ModelRequest*>& others,
                                                  StepId reader) const {
  const auto more = static_cast<std::uint32_t>(others.size());
  const std::uint32_t now = running() + more;
  std::uint32_t most = capacity_.slots;
  if (config_.max_batch_size > 0) most = std::min(most, config_.max_batch_size);
  if (config_.batching == Batching::kNone) most = 1;
  if (now >= most) return Shortage{Budget::kBatchSize, now + 1, most};
  if (sequences_.size() + more >= capacity_.slots) return Shortage{Budget::kSlots, 1, 0};

  std::uint64_t rows = RowsOf(request);
  std::uint64_t reserved = ReservedTokens();
  std::uint64_t blocks = BlocksToReserve(request) - BlocksInUse(Match(request, reader)) + headroom_;
  std::uint64_t in_window = WindowBlocksFor(TokensToReserve(request)) + window_headroom_;
  std::vector<std::uint64_t> lengths{request.WorstCase()};
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.retiring) continue;
    rows += RowsOf(sequence);
    lengths.push_back(sequence.WorstCase());
  }
  for (const ModelRequest* other : others) {
    rows += RowsOf(*other);
    reserved += TokensToReserve(*other);
    blocks += BlocksToReserve(*other) - BlocksInUse(Match(*other, reader));
    in_window += WindowBlocksFor(TokensToReserve(*other));
    lengths.push_back(other->WorstCase());
  }
  if (now > 0 && rows > StepTokens()) return Shortage{Budget::kStepTokens, rows, StepTokens()};
  const std::uint64_t tokens = TokensToReserve(request);
  const std::uint64_t total = config_.max_batch_total_tokens;
  if (total > 0 && reserved + tokens > total) {
    return Shortage{Budget::kTotalTokens, tokens, total - reserved};
  }
  if (padded()) {
    const std::uint64_t cells = LeastCells(lengths, config_.max_splits);
    if (cells > capacity_.cells) return Shortage{Budget::kCells, cells, capacity_.cells};
  }
  const std::uint32_t available = AvailableBlocks();
  if (blocks > available) return Shortage{Budget::kBlocks, blocks, available};
  const std::uint32_t window = AvailableInWindow();
  if (in_window > window) return Shortage{Budget::kBlocks, in_window, window};
  return std::nullopt;
}

// --- Memory of decodes

GroupMemory::Deficit GroupMemory::DeficitOf(const ModelSequence& sequence, std::uint64_t positions,
                                            std::uint64_t tokens) const {
  const std::uint64_t held = sequence.blocks.size() + sequence.reserved;
  const std::uint64_t needed = padded() ? 0 : Blocks(positions);
  const std::uint32_t in_window = WindowBlocksFor(positions);
  return {needed - std::min(needed, held), in_window - std::min(in_window, sequence.window.claim),
          tokens - std::min(tokens, sequence.reserved_tokens)};
}

GroupMemory::Deficit GroupMemory::DecodeDeficit(const ModelSequence& sequence) const {
  const std::uint32_t rows = sequence.NextRows(max_rows_);
  if (rows == 0) return {};
  const std::uint64_t positions = sequence.PositionsAfter(sequence.TokensOf(rows));
  return DeficitOf(sequence, positions, positions + sequence.Unwritten());
}

bool GroupMemory::Covered(const Deficit& deficit, bool with_retiring) const {
  const std::uint32_t back = with_retiring ? store_.retiring() : 0;
  if (deficit.blocks > AvailableBlocks() + back) return false;
  std::uint32_t back_in_window = 0;
  for (const auto& [id, sequence] : sequences_) {
    if (with_retiring && sequence.window.ended) back_in_window += sequence.window.held();
  }
  if (deficit.in_window > AvailableInWindow() + back_in_window) return false;
  const std::uint64_t limit = config_.max_batch_total_tokens;
  return limit == 0 || deficit.tokens == 0 || ReservedTokens() + deficit.tokens <= limit;
}

// The lowest priority, if that is the order, then the latest arrival.
ModelSequence* GroupMemory::Victim() {
  ModelSequence* victim = nullptr;
  const bool ranked = config_.order == scheduler::Order::kPriority;
  for (auto& [id, sequence] : sequences_) {
    if (sequence.retiring || !MayBePreempted(sequence)) continue;
    const bool lower =
        victim != nullptr && ranked && sequence.arrival.priority != victim->arrival.priority
            ? sequence.arrival.priority < victim->arrival.priority
            : victim == nullptr || sequence.number > victim->number;
    if (lower) victim = &sequence;
  }
  return victim;
}

void GroupMemory::PreemptUntilCovered(StepId step, Time now, OutputReader& core_outputs) {
  unreserved_ = {};
  decode_waits_ = false;
  if (config_.admission == AdmissionMode::kGuaranteed) return;
  std::optional<RequestId> beneficiary;
  for (const auto& [id, sequence] : sequences_) {
    const Deficit deficit = DecodeDeficit(sequence);
    if (!beneficiary && !deficit.none()) beneficiary = sequence.id();
    unreserved_ += deficit;
  }
  while (!Covered(unreserved_, true)) {
    ModelSequence* const victim = Victim();
    if (victim == nullptr) throw Difference{"finds nobody to preempt"};
    const Deficit of_victim = DecodeDeficit(*victim);
    Preempt(*victim, beneficiary, step, now, core_outputs);
    unreserved_ -= of_victim;
  }
}

// What the decodes of this step run short of first.
Shortage GroupMemory::Exceeded() const {
  const std::uint32_t blocks = AvailableBlocks();
  if (unreserved_.blocks > blocks) return {Budget::kBlocks, unreserved_.blocks, blocks};
  const std::uint32_t window = AvailableInWindow();
  if (unreserved_.in_window > window) return {Budget::kBlocks, unreserved_.in_window, window};
  const std::uint64_t left = config_.max_batch_total_tokens - ReservedTokens();
  return {Budget::kTotalTokens, unreserved_.tokens, left};
}

void GroupMemory::Preempt(ModelSequence& victim, std::optional<RequestId> beneficiary, StepId step,
                          Time now, OutputReader& core_outputs) {
  Decision decision = Say(victim, DecisionKind::kPreempted, now);
  const Shortage shortage = Exceeded();
  decision.short_of = shortage.budget;
  decision.needed = shortage.needed;
  decision.available = shortage.available;
  if (beneficiary != victim.id()) decision.behind = beneficiary;
  decision.step = step;
  ++victim.preemptions;
  Leave(victim, decision, now, core_outputs);
}

void GroupMemory::Leave(ModelSequence& sequence, const Decision& decision, Time now,
                        OutputReader& core_outputs) {
  core_outputs.Expect(decision);
  sequence.yielded = decision.short_of == Budget::kOrder;
  sequence.retiring = sequence.preempted = true;
  ReleaseBlocks(sequence);
  ReclaimUnnamed(sequence.sequence, now, core_outputs);
}

void GroupMemory::YieldTo(RequestId due, StepId step, Time now, OutputReader& core_outputs) {
  for (auto next = sequences_.begin(); next != sequences_.end();) {
    ModelSequence& sequence = next++->second;
    if (!sequence.HadQuantum(config_.starvation_quantum)) continue;
    Decision decision = Say(sequence, DecisionKind::kPreempted, now);
    decision.short_of = Budget::kOrder;
    decision.needed = config_.starvation_quantum;
    decision.available = sequence.received() - sequence.resumed;
    decision.behind = due;
    decision.step = step;
    Leave(sequence, decision, now, core_outputs);
  }
}

void GroupMemory::Recompute(ModelSequence& sequence, Time now, OutputReader& core_outputs) {
  const bool at_length = sequence.PromptLeft() == 0 && sequence.PositionsLeft() == 0;
  if (sequence.retiring || sequence.plans_in_flight > 0 || !at_length) return;
  Decision decision = Say(sequence, DecisionKind::kPreempted, now);
  decision.short_of = Budget::kOriginalLength;
  decision.needed = sequence.PositionsAfter(1);
  decision.available = sequence.most_positions;
  decision.step = sequence.last_plan;
  sequence.recomputed = true;
  Leave(sequence, decision, now, core_outputs);
}

// Grows the reservation to what is expected now, if there is room beside the other decodes, else
// by what the next decode needs.
bool GroupMemory::Reserve(ModelSequence& sequence, Time now, OutputReader& core_outputs) {
  const Deficit deficit = unreserved_.none() ? Deficit{} : DecodeDeficit(sequence);
  if (deficit.none()) return true;
  if (decode_waits_ || !Covered(deficit, false)) {
    decode_waits_ = true;
    if (std::exchange(sequence.waits_for_memory, true)) return false;
    Decision decision = Say(sequence, DecisionKind::kDeferred, now);
    decision.short_of = Budget::kBlocks;
    if (deficit.blocks > 0) {
      decision.needed = deficit.blocks;
      decision.available = AvailableBlocks();
    } else if (deficit.in_window > 0) {
      decision.needed = deficit.in_window;
      decision.available = AvailableInWindow();
    } else {
      decision.short_of = Budget::kTotalTokens;
      decision.needed = deficit.tokens;
    }
    core_outputs.Expect(decision);
    return false;
  }
  sequence.waits_for_memory = false;
  unreserved_ -= deficit;
  const std::uint64_t expected = TokensToReserve(sequence);
  Deficit more = DeficitOf(sequence, expected, expected);
  more.blocks = std::max(more.blocks, deficit.blocks);
  more.in_window = std::max(more.in_window, deficit.in_window);
  more.tokens = std::max(more.tokens, deficit.tokens);
  Deficit all = unreserved_;
  all += more;
  if (!Covered(all, false)) more = deficit;
  sequence.reserved += static_cast<std::uint32_t>(more.blocks);
  sequence.window.claim += static_cast<std::uint32_t>(more.in_window);
  sequence.reserved_tokens += more.tokens;
  return true;
}

// What the running sequences may write in the next pipeline_depth steps outside their reservations.
void GroupMemory::UpdateHeadroom() {
  headroom_ = window_headroom_ = 0;
  if (config_.admission == AdmissionMode::kGuaranteed) return;
  Deficit sum;
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.retiring) continue;
    const std::uint64_t of_decode = sequence.TokensOf(sequence.most_rows);
    const std::uint64_t next = sequence.PositionsAfter(config_.pipeline_depth * of_decode);
    sum += DeficitOf(sequence, std::min(next, sequence.WorstCase()), 0);
  }
  headroom_ = static_cast<std::uint32_t>(sum.blocks);
  window_headroom_ = static_cast<std::uint32_t>(sum.in_window);
}

// --- What sequences hold

ModelSequence& GroupMemory::Add(ModelRequest request, SequenceId id, const StoreMatch& match) {
  const std::uint32_t blocks = BlocksToReserve(request);
  ModelSequence& sequence = sequences_[id];
  static_cast<ModelRequest&>(sequence) = std::move(request);
  sequence.sequence = id;
  sequence.arithmetic_class = arithmetic_class_;
  sequence.root = RootOf(sequence);
  sequence.most_rows = MostRowsOf(sequence.arrival);
  const bool short_text =
      capacity_.length_rule == LengthRule::kRecompute && LengthOf(sequence) == 0;
  if (short_text) sequence.most_positions = capacity_.original_length;
  const std::size_t last = (sequence.prompt() + sequence.received() - 1) / capacity_.block_size;
  const std::size_t cut = match.found > match.blocks.size() ? match.found : last;
  if (store_.recurrent() && cut > match.blocks.size()) {
    sequence.cut = static_cast<std::uint32_t>(cut) * capacity_.block_size;
  }
  sequence.reserved_tokens = TokensToReserve(sequence);
  sequence.resumed = sequence.received();
  sequence.blocks = match.blocks;
  for (const StoreBlock block : match.blocks) store_.Hold(block);
  sequence.adopted = sequence.entered = static_cast<std::uint32_t>(match.blocks.size());
  sequence.reserved = blocks - sequence.adopted;
  sequence.cached = sequence.adopted * capacity_.block_size;
  sequence.window.claim = WindowBlocksFor(sequence.reserved_tokens);
  store_.window().Adopt(match.blocks, sequence.window);
  if (match.tail && TailFits(AvailableBlocks(), AvailableInWindow())) {
    store_.Protect(match.tail);
    sequence.tail_to_copy = match.tail;
    sequence.cached += match.tail_tokens;
  }
  sequence.planned = sequence.cached;
  return sequence;
}

// A tail cannot be copied if the reservation may need its block. With a window the sequence may
// free a block of the window before it copies the tail, so it needs two.
bool GroupMemory::TailFits(std::uint32_t blocks, std::uint32_t in_window) const {
  return blocks > 0 && (!store_.window().present() || in_window >= 2);
}

void GroupMemory::Enter(ModelSequence& sequence, StepId step) {
  const std::uint32_t next = (sequence.closed ? sequence.followed : sequence.entered) + 1;
  const bool done = sequence.closed && !sequence.same;
  if (done || next * capacity_.block_size > sequence.Known()) return;
  const std::vector<History> histories = HistoriesOf(sequence.root, sequence.Tokens());
  while (!sequence.closed && (sequence.entered + 1) * capacity_.block_size <= sequence.Known()) {
    const auto before =
        sequence.entered > 0 ? std::optional(sequence.blocks[sequence.entered - 1]) : std::nullopt;
    const History history = histories[(sequence.entered + 1) * capacity_.block_size - 1];
    const std::size_t index = sequence.entered;
    if (store_.Enter(sequence.blocks[index], before, history, step)) {
      ++sequence.entered;
      Attach(sequence, sequence.blocks[index], index, step);
      continue;
    }
    sequence.closed = true;
    const bool valid = !before || !store_.IsInvalid(*before);
    if (valid) sequence.same = store_.NodeWith(history);
    sequence.followed = sequence.entered + 1;
    if (sequence.same) Attach(sequence, sequence.same->block, index, step);
  }
  Follow(sequence, histories, step);
}

// The sequence computes tokens that are in the index, because blocks of its window were missing.
void GroupMemory::Follow(ModelSequence& sequence, const std::vector<History>& histories,
                         StepId step) {
  if (!store_.window().present()) return;
  while (sequence.same && (sequence.followed + 1) * capacity_.block_size <= sequence.Known()) {
    const bool stays = store_.Has(*sequence.same);
    const History history = histories[(sequence.followed + 1) * capacity_.block_size - 1];
    sequence.same = stays ? store_.NodeWith(history) : std::nullopt;
    if (!sequence.same) return;
    Attach(sequence, sequence.same->block, sequence.followed, step);
    ++sequence.followed;
  }
}

void GroupMemory::Attach(const ModelSequence& sequence, StoreBlock node, std::size_t index,
                         StepId step) {
  if (!store_.window().present()) return;
  store_.window().Attach(node, sequence.window.blocks[index], step, sequence.sequence);
}

void GroupMemory::Pin(ModelSequence& sequence, StepId step) {
  const std::uint32_t pinned = std::min(sequence.arrival.pinned_tokens, sequence.prompt());
  if (pinned == 0 || sequence.prefix_pinned || sequence.planned < pinned) return;
  sequence.prefix_pinned = true;
  store_.Pin(sequence.id(), sequence.sequence, sequence.root,
             std::span(sequence.arrival.prompt).first(pinned), sequence.blocks,
             sequence.window.blocks, step);
}

Decision GroupMemory::Say(const ModelSequence& sequence, DecisionKind kind, Time now) const {
  Decision decision;
  decision.at = now;
  decision.request = sequence.id();
  decision.kind = kind;
  decision.group = id_;
  return decision;
}

// The undrawn reservation is free at once.
void GroupMemory::ReleaseBlocks(ModelSequence& sequence) {
  if (std::exchange(sequence.released, true)) return;
  sequence.Close();
  sequence.reserved = 0;
  for (const StoreBlock block : sequence.blocks) store_.Retire(block);
  store_.window().Retire(sequence.window);
}

// The cache keeps the beginning longest.
void GroupMemory::ReclaimBlocks(ModelSequence& sequence) {
  store_.EndLoans(sequence.sequence);
  for (auto it = sequence.blocks.rbegin(); it != sequence.blocks.rend(); ++it) store_.Reclaim(*it);
  store_.window().Reclaim(sequence.window);
  sequence.blocks.clear();
  sequence.adopted = sequence.entered = 0;
}

void GroupMemory::Finish(ModelSequence& sequence, Time now, OutputReader& core_outputs) {
  sequence.retiring = true;
  sequence.preempted = false;
  ReleaseBlocks(sequence);
  Decision decision = Say(sequence, DecisionKind::kFinished, now);
  if (sequence.started) decision.step = sequence.last_plan;
  core_outputs.Expect(decision);
}

void GroupMemory::ReclaimUnnamed(SequenceId id, Time now, OutputReader& core_outputs) {
  ModelSequence& sequence = sequences_.at(id);
  if (sequence.plans_in_flight > 0) return;
  Decision decision = Say(sequence, DecisionKind::kRetired, now);
  if (sequence.started) decision.step = sequence.last_plan;
  decision.available = sequence.blocks.size() + sequence.window.held();
  core_outputs.Expect(decision);
  ReclaimBlocks(sequence);
  if (sequence.started) ended_.push_back(id);
  if (sequence.preempted) preempted_.push_back(sequence);
  sequences_.erase(id);
}

// --- Ends that the router asks for

ModelSequence* GroupMemory::FindRunning(RequestId request) {
  for (auto& [id, sequence] : sequences_) {
    const bool here = !sequence.retiring || sequence.preempted;
    if (here && sequence.id() == request) return &sequence;
  }
  return nullptr;
}

bool GroupMemory::Cancel(RequestId request, Time now, OutputReader& core_outputs) {
  ModelSequence* const sequence = FindRunning(request);
  if (sequence == nullptr) return false;
  Finish(*sequence, now, core_outputs);
  ReclaimUnnamed(sequence->sequence, now, core_outputs);
  return true;
}

bool GroupMemory::FinishAt(RequestId request, std::uint32_t tokens, Time now,
                           OutputReader& core_outputs) {
  ModelSequence* const sequence = FindRunning(request);
  if (sequence == nullptr) return false;
  if (tokens > sequence->received()) {
    sequence->finish_at = std::min(tokens, sequence->finish_at.value_or(tokens));
    return true;
  }
  lengths_.Learn(sequence->arrival, tokens);
  Finish(*sequence, now, core_outputs);
  ReclaimUnnamed(sequence->sequence, now, core_outputs);
  return true;
}

void GroupMemory::ExpectPinChanges(OutputReader& core_outputs) {
  for (scheduler::PinChange& change : store_.TakePinChanges()) {
    change.group = id_;
    core_outputs.Expect(change);
  }
}

void GroupMemory::Lose(const scheduler::GroupLost& lost, Time now, OutputReader& core_outputs) {
  for (auto& [id, sequence] : sequences_) {
    if (sequence.retiring && !sequence.preempted) continue;
    const bool blamed = recovers() ? sequence.suspect() && !lost.in_order : !sequence.preempted;
    if (blamed) {
      Finish(sequence, now, core_outputs);
    } else if (recovers()) {
      sequence.lost = true;
      sequence.yielded = false;
      sequence.losses += lost.in_order ? 0 : 1;
      Decision lost_here = Say(sequence, DecisionKind::kLost, now);
      lost_here.needed = sequence.losses;
      core_outputs.Expect(lost_here);
    }
    if (!blamed) preempted_.push_back(sequence);
  }
  store_.ForgetAll();
  ExpectPinChanges(core_outputs);
}

void GroupMemory::AddTo(scheduler::Snapshot& sum) const {
  sum.running += running();
  sum.retiring += static_cast<std::uint32_t>(sequences_.size()) - running();
  sum.blocks_free += store_.free();
  sum.blocks_used += store_.used();
  sum.blocks_cached += store_.cached();
  sum.blocks_retiring += store_.retiring();
  sum.blocks_total += capacity_.blocks;
  sum.window_blocks_free += store_.window().free();
  sum.window_blocks_used += store_.window().used();
  sum.window_blocks_cached += store_.window().cached();
  sum.window_blocks_retiring += store_.window().retiring();
  sum.window_blocks_total += store_.window().total();
}

}  // namespace penstock::sim
