#include "sim/model/group_memory.h"

#include <algorithm>
#include <string>

#include "sim/model/decode_partition.h"

namespace penstock::sim {

using scheduler::AdmissionMode;
using scheduler::Arrival;
using scheduler::Batching;
using scheduler::Config;
using scheduler::GroupUp;
using scheduler::Prefill;
using scheduler::Shortage;

namespace {

constexpr std::uint32_t kMaxPreemptions = 3;

std::uint32_t RowsOf(const ModelRequest& request) { return std::max(1u, request.candidates()); }

}  // namespace

GroupMemory::GroupMemory(const Config& config, const GroupUp& up, ExpectedLengths& lengths)
    : config_(config),
      id_(up.group),
      capacity_(up.capacity),
      lengths_(lengths),
      store_(config, up.capacity) {}

std::uint32_t GroupMemory::StepTokens() const {
  return std::min(config_.max_step_tokens, capacity_.max_step_tokens);
}

std::uint32_t GroupMemory::PrefillTokens() const {
  const std::uint32_t share = config_.max_batch_prefill_tokens;
  return share > 0 ? std::min(share, StepTokens()) : StepTokens();
}

std::uint32_t GroupMemory::Blocks(std::uint64_t positions) const {
  return static_cast<std::uint32_t>((positions + capacity_.block_size - 1) / capacity_.block_size);
}

std::uint32_t GroupMemory::running() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(sequences_, [](const auto& each) { return !each.second.retiring; }));
}

std::optional<RequestId> GroupMemory::OldestRunning() const {
  for (const auto& [id, sequence] : sequences_) {
    if (!sequence.retiring) return sequence.id();
  }
  return std::nullopt;
}

std::uint64_t GroupMemory::ReservedTokens() const {
  std::uint64_t tokens = 0;
  for (const auto& [id, sequence] : sequences_) {
    if (!sequence.retiring) tokens += sequence.reserved_tokens;
  }
  return tokens;
}

std::uint32_t GroupMemory::AvailableBlocks() const {
  std::uint32_t blocks = store_.free() + store_.cached();
  for (const auto& [id, sequence] : sequences_) blocks -= sequence.reserved;
  return blocks;
}

// --- Admission

bool GroupMemory::MayBePreempted(const ModelRequest& request) const {
  if (config_.admission == AdmissionMode::kGuaranteed) return false;
  if (config_.admission == AdmissionMode::kMixed && request.arrival.length_given) return false;
  return request.preemptions < kMaxPreemptions;
}

std::uint64_t GroupMemory::TokensToReserve(const ModelRequest& request) const {
  if (!MayBePreempted(request)) return request.WorstCase();
  const std::uint32_t in_pipeline = config_.pipeline_depth * config_.max_decode_rows;
  const std::uint32_t expected = std::max(lengths_.Expect(request.arrival, request.received()),
                                          request.received() + in_pipeline);
  return request.prompt() + std::min(request.arrival.max_new_tokens, expected);
}

std::uint32_t GroupMemory::BlocksToReserve(const ModelRequest& request) const {
  return Blocks(padded() ? request.prompt() + request.received() : TokensToReserve(request));
}

std::optional<Shortage> GroupMemory::WhyNever(const Arrival& arrival) const {
  const std::uint64_t worst = arrival.prompt.size() + std::uint64_t{arrival.max_new_tokens};
  const std::uint64_t pool = std::uint64_t{capacity_.blocks} * capacity_.block_size;
  for (const std::uint64_t limit :
       {std::uint64_t{capacity_.max_sequence_length}, std::uint64_t{config_.max_batch_total_tokens},
        pool, std::uint64_t{capacity_.cells}}) {
    const bool none = limit == 0 && limit != pool;
    if (!none && worst > limit) return Shortage{Budget::kTotalTokens, worst, limit};
  }
  const std::uint32_t candidates = arrival.sampling.Candidates();
  const std::uint32_t most = std::min(capacity_.max_candidates, StepTokens());
  if (candidates > most) return Shortage{Budget::kStepTokens, candidates, most};
  if (config_.prefill == Prefill::kWhole && arrival.prompt.size() > PrefillTokens()) {
    return Shortage{Budget::kPrefillTokens, arrival.prompt.size(), PrefillTokens()};
  }
  return std::nullopt;
}

bool GroupMemory::NeedsEveryRow(const ModelRequest& request) {
  return request.arrival.logprobs.prompt_logprobs && request.generated.empty();
}

// The length that K and V of the text depend on; 0 up to the original length.
std::uint32_t GroupMemory::LengthOf(const ModelRequest& request) const {
  const std::uint32_t original = capacity_.original_length;
  const std::uint32_t text = request.prompt() + request.received() + (request.candidates() > 0);
  if (capacity_.length_rule == LengthRule::kRecompute) return text > original ? 1 : 0;
  const bool by_prompt = capacity_.length_rule == LengthRule::kPromptLength;
  return by_prompt && request.prompt() > original ? request.prompt() : 0;
}

std::string GroupMemory::RootOf(const ModelRequest& request) const {
  const std::uint32_t length = LengthOf(request);
  if (length == 0) return request.arrival.tenant;
  return request.arrival.tenant + '\0' + std::to_string(length);
}

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
  return std::nullopt;
}

// --- Memory of decodes

GroupMemory::Deficit GroupMemory::DeficitOf(const ModelSequence& sequence, std::uint64_t positions,
                                            std::uint64_t tokens) const {
  const std::uint64_t held = sequence.blocks.size() + sequence.reserved;
  const std::uint64_t needed = padded() ? 0 : Blocks(positions);
  return {needed - std::min(needed, held), tokens - std::min(tokens, sequence.reserved_tokens)};
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

void GroupMemory::PreemptUntilCovered(StepId step, Time now, Told& told) {
  unreserved_ = {};
  decode_waits_ = false;
  if (config_.admission == AdmissionMode::kGuaranteed) return;
  std::optional<RequestId> beneficiary;
  for (const auto& [id, sequence] : sequences_) {
    const Deficit deficit = DecodeDeficit(sequence);
    if (!beneficiary && !deficit.none()) beneficiary = sequence.id();
    unreserved_.blocks += deficit.blocks;
    unreserved_.tokens += deficit.tokens;
  }
  while (!Covered(unreserved_, true)) {
    ModelSequence* const victim = Victim();
    if (victim == nullptr) throw Difference{"finds nobody to preempt"};
    const Deficit of_victim = DecodeDeficit(*victim);
    Preempt(*victim, beneficiary, step, now, told);
    unreserved_.blocks -= of_victim.blocks;
    unreserved_.tokens -= of_victim.tokens;
  }
}

void GroupMemory::Preempt(ModelSequence& victim, std::optional<RequestId> beneficiary, StepId step,
                          Time now, Told& told) {
  const bool blocks = unreserved_.blocks > AvailableBlocks();
  Decision decision = Say(victim, DecisionKind::kPreempted, now);
  decision.short_of = blocks ? Budget::kBlocks : Budget::kTotalTokens;
  decision.needed = blocks ? unreserved_.blocks : unreserved_.tokens;
  decision.available =
      blocks ? AvailableBlocks() : config_.max_batch_total_tokens - ReservedTokens();
  if (beneficiary != victim.id()) decision.behind = beneficiary;
  decision.step = step;
  told.Expect(decision);
  victim.retiring = true;
  victim.preempted = true;
  ++victim.preemptions;
  ReleaseBlocks(victim);
  ReclaimUnnamed(victim.sequence, now, told);
}

void GroupMemory::Recompute(ModelSequence& sequence, Time now, Told& told) {
  const bool at_length = sequence.PromptLeft() == 0 && sequence.PositionsLeft() == 0;
  if (sequence.retiring || sequence.plans_in_flight > 0 || !at_length) return;
  Decision decision = Say(sequence, DecisionKind::kPreempted, now);
  decision.short_of = Budget::kOriginalLength;
  decision.needed = sequence.PositionsAfter(1);
  decision.available = sequence.most_positions;
  decision.step = sequence.last_plan;
  told.Expect(decision);
  sequence.retiring = true;
  sequence.preempted = true;
  sequence.recomputed = true;
  ReleaseBlocks(sequence);
  ReclaimUnnamed(sequence.sequence, now, told);
}

// Grows the reservation to what is expected now, if there is room beside the other decodes, else
// by what the next decode needs.
bool GroupMemory::Reserve(ModelSequence& sequence, Time now, Told& told) {
  const Deficit deficit = unreserved_.none() ? Deficit{} : DecodeDeficit(sequence);
  if (deficit.none()) return true;
  if (decode_waits_ || !Covered(deficit, false)) {
    decode_waits_ = true;
    if (std::exchange(sequence.waits_for_memory, true)) return false;
    Decision decision = Say(sequence, DecisionKind::kDeferred, now);
    const bool blocks = deficit.blocks > 0;
    decision.short_of = blocks ? Budget::kBlocks : Budget::kTotalTokens;
    decision.needed = blocks ? deficit.blocks : deficit.tokens;
    decision.available = blocks ? AvailableBlocks() : 0;
    told.Expect(decision);
    return false;
  }
  sequence.waits_for_memory = false;
  unreserved_.blocks -= deficit.blocks;
  unreserved_.tokens -= deficit.tokens;
  const std::uint64_t expected = TokensToReserve(sequence);
  Deficit more = DeficitOf(sequence, expected, expected);
  more.blocks = std::max(more.blocks, deficit.blocks);
  more.tokens = std::max(more.tokens, deficit.tokens);
  const Deficit all{unreserved_.blocks + more.blocks, unreserved_.tokens + more.tokens};
  if (!Covered(all, false)) more = deficit;
  sequence.reserved += static_cast<std::uint32_t>(more.blocks);
  sequence.reserved_tokens += more.tokens;
  return true;
}

// What the running sequences may write in the next pipeline_depth steps outside their reservations.
void GroupMemory::UpdateHeadroom() {
  headroom_ = 0;
  if (config_.admission == AdmissionMode::kGuaranteed) return;
  std::uint64_t blocks = 0;
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.retiring) continue;
    const std::uint64_t tokens =
        std::uint64_t{config_.pipeline_depth} * sequence.TokensOf(config_.max_decode_rows);
    const std::uint64_t most = sequence.WorstCase();
    blocks += DeficitOf(sequence, std::min(sequence.PositionsAfter(tokens), most), 0).blocks;
  }
  headroom_ = static_cast<std::uint32_t>(blocks);
}

// --- What sequences hold

ModelSequence& GroupMemory::Add(ModelRequest request, SequenceId id, const StoreMatch& match) {
  const std::uint32_t blocks = BlocksToReserve(request);
  ModelSequence& sequence = sequences_[id];
  static_cast<ModelRequest&>(sequence) = std::move(request);
  sequence.sequence = id;
  sequence.root = RootOf(sequence);
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
  // A tail that a reservation may need cannot be copied.
  if (match.tail && AvailableBlocks() > 0) {
    store_.Protect(match.tail);
    sequence.tail_to_copy = match.tail;
    sequence.cached += match.tail_tokens;
  }
  sequence.planned = sequence.cached;
  return sequence;
}

void GroupMemory::Enter(ModelSequence& sequence, StepId step) {
  const std::vector<History> histories = HistoriesOf(sequence.root, sequence.Tokens());
  while (!sequence.closed && (sequence.entered + 1) * capacity_.block_size <= sequence.Known()) {
    const auto before =
        sequence.entered > 0 ? std::optional(sequence.blocks[sequence.entered - 1]) : std::nullopt;
    const History history = histories[(sequence.entered + 1) * capacity_.block_size - 1];
    sequence.closed = !store_.Enter(sequence.blocks[sequence.entered], before, history, step);
    sequence.entered += !sequence.closed;
  }
}

void GroupMemory::Pin(ModelSequence& sequence, StepId step) {
  const std::uint32_t pinned = std::min(sequence.arrival.pinned_tokens, sequence.prompt());
  if (pinned == 0 || sequence.prefix_pinned || sequence.planned < pinned) return;
  sequence.prefix_pinned = true;
  store_.Pin(sequence.id(), sequence.sequence, sequence.root,
             std::span(sequence.arrival.prompt).first(pinned), sequence.blocks, step);
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
  sequence.closed = true;
  sequence.reserved = 0;
  for (const StoreBlock block : sequence.blocks) store_.Retire(block);
}

// The cache keeps the beginning longest.
void GroupMemory::ReclaimBlocks(ModelSequence& sequence) {
  store_.EndLoans(sequence.sequence);
  for (auto it = sequence.blocks.rbegin(); it != sequence.blocks.rend(); ++it) store_.Reclaim(*it);
  sequence.blocks.clear();
  sequence.adopted = sequence.entered = 0;
}

void GroupMemory::Finish(ModelSequence& sequence, Time now, Told& told) {
  sequence.retiring = true;
  sequence.preempted = false;
  ReleaseBlocks(sequence);
  Decision decision = Say(sequence, DecisionKind::kFinished, now);
  if (sequence.started) decision.step = sequence.last_plan;
  told.Expect(decision);
}

void GroupMemory::ReclaimUnnamed(SequenceId id, Time now, Told& told) {
  ModelSequence& sequence = sequences_.at(id);
  if (sequence.plans_in_flight > 0) return;
  Decision decision = Say(sequence, DecisionKind::kRetired, now);
  if (sequence.started) decision.step = sequence.last_plan;
  decision.available = sequence.blocks.size();
  told.Expect(decision);
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

bool GroupMemory::Cancel(RequestId request, Time now, Told& told) {
  ModelSequence* const sequence = FindRunning(request);
  if (sequence == nullptr) return false;
  Finish(*sequence, now, told);
  ReclaimUnnamed(sequence->sequence, now, told);
  return true;
}

bool GroupMemory::FinishAt(RequestId request, std::uint32_t tokens, Time now, Told& told) {
  ModelSequence* const sequence = FindRunning(request);
  if (sequence == nullptr) return false;
  if (tokens > sequence->received()) {
    sequence->finish_at = std::min(tokens, sequence->finish_at.value_or(tokens));
    return true;
  }
  lengths_.Learn(sequence->arrival, tokens);
  Finish(*sequence, now, told);
  ReclaimUnnamed(sequence->sequence, now, told);
  return true;
}

void GroupMemory::ExpectPinChanges(Told& told) {
  for (scheduler::PinChange& change : store_.TakePinChanges()) {
    change.group = id_;
    told.Expect(change);
  }
}

void GroupMemory::Lose(Time now, Told& told) {
  for (auto& [id, sequence] : sequences_) {
    if (sequence.preempted) preempted_.push_back(sequence);
    if (!sequence.retiring) Finish(sequence, now, told);
  }
  store_.ForgetAll();
  ExpectPinChanges(told);
}

void GroupMemory::AddTo(scheduler::Snapshot& sum) const {
  sum.running += running();
  sum.retiring += static_cast<std::uint32_t>(sequences_.size()) - running();
  sum.blocks_free += store_.free();
  sum.blocks_used += store_.used();
  sum.blocks_cached += store_.cached();
  sum.blocks_retiring += store_.retiring();
  sum.blocks_total += capacity_.blocks;
}

}  // namespace penstock::sim
