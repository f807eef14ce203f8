#include "sim/model/model_group.h"

#include <algorithm>

namespace penstock::sim {

using scheduler::Batching;
using scheduler::Config;
using scheduler::GroupUp;
using scheduler::Prefill;
using scheduler::Shortage;
using scheduler::StaticGrouping;

namespace {

constexpr std::uint32_t kRowsWithDrafts = 16;
constexpr std::uint32_t kLeastPrefill = 4;

}  // namespace

ModelGroup::ModelGroup(const Config& config, const GroupUp& up, ExpectedLengths& lengths)
    : GroupMemory(config, up, lengths),
      epoch_(up.epoch),
      times_(up.calibration),
      partition_(config, up.capacity.cells) {
  draft_.step = StepId(1);
}

// --- Admission

std::uint32_t ModelGroup::CachedTokens(const ModelRequest& request) const {
  const StoreMatch match = Match(request, draft_.step);
  const auto blocks = static_cast<std::uint32_t>(match.blocks.size()) * capacity_.block_size;
  const std::uint32_t needed = BlocksToReserve(request) - BlocksInUse(match);
  const std::uint32_t claim = WindowBlocksFor(TokensToReserve(request));
  const auto left = [](std::uint32_t all, std::uint32_t taken) {
    return all - std::min(all, taken);
  };
  const bool fits = TailFits(left(AvailableBlocks(), needed), left(AvailableInWindow(), claim));
  return blocks + (fits ? match.tail_tokens : 0);
}

std::optional<Shortage> ModelGroup::WhyNotNow(const ModelRequest& request) const {
  const bool suspect =
      std::ranges::any_of(sequences_, [](const auto& each) { return each.second.suspect(); });
  if (!sequences_.empty() && (suspect || request.suspect())) return Shortage{Budget::kAlone, 1, 0};
  const std::uint32_t now = running();
  if (config_.batching == Batching::kStatic && now > 0) {
    const bool joins = config_.static_grouping == StaticGrouping::kWindow ||
                       batch_ == std::pair(request.prompt(), request.arrival.max_new_tokens);
    if (!open_ || !joins) return Shortage{Budget::kBatchSize, now + 1, now};
  }
  return WhyNotBeside(request, {}, draft_.step);
}

// The running sequence that shares most tokens beyond what the request finds, and will compute
// them.
std::optional<ModelGroup::Awaited> ModelGroup::AwaitedPrefix(const ModelRequest& request) const {
  if (!store_.sharing() || NeedsEveryRow(request)) return std::nullopt;
  std::vector<TokenId> tokens = request.Tokens();
  tokens.pop_back();
  const StoreMatch match = Match(request, draft_.step);
  std::vector<StoreBlock> found = match.blocks;
  found.insert(found.end(), match.planned.begin(), match.planned.end());
  std::optional<Awaited> best;
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.retiring || sequence.root != RootOf(request)) continue;
    if (sequence.entered < found.size()) continue;
    if (!found.empty() && sequence.blocks[found.size() - 1] != found.back()) continue;
    const std::uint32_t shared = SharedBlocks(sequence, tokens, found.size());
    const std::uint32_t shared_tokens = shared * capacity_.block_size;
    if (shared == match.blocks.size() || (best && best->shared >= shared_tokens)) continue;
    const auto present = static_cast<std::uint32_t>(match.blocks.size()) * capacity_.block_size;
    best = Awaited{sequence.id(), shared_tokens, present};
  }
  return best;
}

// Blocks that the sequence has or will compute, at least the `found` ones. With recurrent layers
// they end where the sequence will save a snapshot.
std::uint32_t ModelGroup::SharedBlocks(const ModelSequence& sequence,
                                       const std::vector<TokenId>& tokens,
                                       std::size_t found) const {
  const bool enters = sequence.entered == found && !sequence.closed;
  const auto matched = static_cast<std::uint32_t>(found);
  if (sequence.PromptLeft() == 0 || !(enters || store_.recurrent())) return matched;
  std::vector<TokenId> its = sequence.Tokens();
  its.resize(sequence.PromptLength());
  const auto end = std::ranges::mismatch(its, tokens).in1;
  const auto common = static_cast<std::uint32_t>(end - its.begin()) / capacity_.block_size;
  if (!store_.recurrent()) return common;
  const std::uint32_t cut = sequence.cut / capacity_.block_size;
  return sequence.planned < sequence.cut && cut <= common ? std::max(matched, cut) : matched;
}

std::optional<Shortage> ModelGroup::WhyNotInStep(const ModelRequest& request) const {
  if (config_.batching == Batching::kStatic) return std::nullopt;  // later steps prefill
  const std::uint32_t cached = CachedTokens(request);
  const std::uint32_t length = request.prompt() + request.received();
  const bool whole = config_.prefill == Prefill::kWhole && length <= PrefillTokens();
  const std::uint32_t needed = whole ? length - cached : 1;
  const Fit fit = FitOf(cached, needed);
  if (fit.count >= needed) return std::nullopt;
  return Shortage{fit.short_of, length - cached, fit.count};
}

bool ModelGroup::TakesEquals() const {
  return config_.batching == Batching::kStatic &&
         config_.static_grouping == StaticGrouping::kEqual && open_ && running() > 0;
}

std::uint32_t ModelGroup::LeastNewcomers() const {
  const bool rule = config_.prefill == Prefill::kWhole && config_.batching == Batching::kContinuous;
  if (!rule || steps_without_admission_ >= config_.max_waiting_tokens) return 0;
  return running() * config_.waiting_served_permille / 1000;
}

std::uint32_t ModelGroup::Together(const std::vector<const ModelRequest*>& requests,
                                   std::uint32_t most) const {
  std::uint64_t prefill = FitOf(0, UINT32_MAX).count;
  std::vector<const ModelRequest*> others;
  for (const ModelRequest* request : requests) {
    const std::uint32_t length = request->prompt() + request->received();
    if (others.size() >= most || length > prefill || WhyNotBeside(*request, others, draft_.step))
      break;
    prefill -= length;
    others.push_back(request);
  }
  return static_cast<std::uint32_t>(others.size());
}

// --- A step

// The most rows, drafts included, of a decode without candidates. Candidates take their rows from
// kRowsWithDrafts first; the other decodes share the rest equally.
std::uint32_t ModelGroup::MaxRows() const {
  std::uint32_t plain = 0;
  std::uint32_t candidates = 0;
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.retiring) continue;
    plain += sequence.candidates() == 0;
    candidates += sequence.candidates();
  }
  if (plain == 0) return 1;
  const std::uint32_t rows = std::min(kRowsWithDrafts, StepTokens());
  return std::clamp((rows - std::min(rows, candidates)) / plain, 1u, MostRows());
}

void ModelGroup::BeginStep(const ModelRequest* due, Time now, OutputReader& core_outputs) {
  const StepId step = draft_.step;
  draft_ = ModelStep{};
  draft_.step = step;
  draft_.tokens_left = StepTokens();
  draft_.prefill_left = PrefillTokens();
  rows_.clear();
  row_segments_.clear();
  open_ = running() == 0;
  const bool yields = due != nullptr && config_.batching == Batching::kContinuous;
  if (yields && WhyNotNow(*due)) YieldTo(due->id(), step, now, core_outputs);
  max_rows_ = MaxRows();
  PreemptUntilCovered(step, now, core_outputs);
  for (auto& [id, sequence] : sequences_) {
    AddDecode(sequence, now, core_outputs);
    KeepRow(sequence);
  }
  SplitDecodes(now, core_outputs);
  UpdateHeadroom();
  for (auto& [id, sequence] : sequences_) AddChunk(sequence, now, core_outputs);
}

void ModelGroup::AddDecode(ModelSequence& sequence, Time now, OutputReader& core_outputs) {
  const std::uint32_t wanted = sequence.NextRows(max_rows_);
  if (wanted == 0 || !Reserve(sequence, now, core_outputs)) return;
  const std::uint64_t context = sequence.PositionsAfter(sequence.TokensOf(wanted));
  const std::uint32_t rows = std::min(wanted, draft_.tokens_left);
  if (rows < std::max(1u, sequence.candidates())) return;
  draft_.tokens_left -= rows;
  draft_.work.decode_rows += rows;
  draft_.work.positions_read += rows * context;
  if (!padded()) Grow(sequence, sequence.PositionsAfter(sequence.TokensOf(rows)));
  if (padded() || capacity_.padded_attention) {
    rows_.push_back({sequence.sequence, context, rows});
    row_segments_.emplace_back(static_cast<std::uint32_t>(draft_.segments.size()));
  }
  if (padded() && !sequence.padded_since) {
    sequence.padded_since = draft_.step;
    ReleaseBlocks(sequence);
  }
  ModelStep::Rows segment;
  segment.count = rows;
  segment.most_tokens = sequence.TokensOf(rows);
  Name(sequence, segment);
}

// A sequence that does not decode in this step keeps its row. A late grammar mask may still give
// it a position.
void ModelGroup::KeepRow(const ModelSequence& sequence) {
  if (!sequence.padded_since || sequence.retiring) return;
  if (!rows_.empty() && rows_.back().sequence == sequence.sequence) return;
  const std::uint32_t next = sequence.arrival.grammar.empty() ? 0 : sequence.NextRows(1);
  rows_.push_back({sequence.sequence, sequence.PositionsAfter(sequence.TokensOf(next)), 1});
  row_segments_.emplace_back();
}

void ModelGroup::SplitDecodes(Time now, OutputReader& core_outputs) {
  if (rows_.empty()) return;
  partition_.Update(rows_, times_.LaunchCells());
  const auto& parts = partition_.parts();
  std::map<std::size_t, std::size_t> part_of;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    ModelStep::Group& group = draft_.groups.emplace_back();
    std::uint64_t longest = 0;
    for (const std::size_t row : parts[p]) {
      part_of[row] = p;
      if (row_segments_[row]) group.segments.push_back(*row_segments_[row]);
      if (padded()) group.rows.push_back(rows_[row].sequence);
      longest = std::max(longest, rows_[row].length);
      draft_.info.decode_tokens += rows_[row].length;
    }
    if (padded()) group.width = longest;
    draft_.info.decode_cells += longest * parts[p].size();
  }
  draft_.info.decode_parts = static_cast<std::uint32_t>(parts.size());
  if (!partition_.renewed()) return;
  renewed_ = true;
  for (const std::size_t row : partition_.moved()) {
    Decision decision = Say(sequences_.at(rows_[row].sequence), DecisionKind::kSplit, now);
    decision.needed = parts.size();
    decision.available = part_of[row];
    decision.step = draft_.step;
    core_outputs.Expect(decision);
  }
}

ModelGroup::Fit ModelGroup::FitOf(std::uint32_t first, std::uint32_t wanted) const {
  Fit fit{std::min({wanted, draft_.tokens_left, draft_.prefill_left}), Budget::kNone};
  if (fit.count < wanted) {
    fit.short_of =
        draft_.tokens_left <= draft_.prefill_left ? Budget::kStepTokens : Budget::kPrefillTokens;
  }
  const bool timed = config_.target_inter_token > Duration(0) && times_.known() &&
                     config_.prefill == Prefill::kChunked && draft_.work.decode_rows > 0;
  if (!timed) return fit;
  const auto prefilled = static_cast<std::uint32_t>(draft_.work.prompt_tokens);
  const std::uint32_t least = kLeastPrefill - std::min(kLeastPrefill, prefilled);
  const Duration allowed = TimeAllowed();
  std::uint32_t count = std::min(least, fit.count);
  while (count < fit.count && times_.Predict(draft_.work.WithChunk(first, count + 1)) <= allowed) {
    ++count;
  }
  return count < fit.count ? Fit{count, Budget::kStepTime} : fit;
}

// The target, or a quarter more than the decodes take if fewer than kLeastPrefill tokens fit.
Duration ModelGroup::TimeAllowed() const {
  StepWork decodes = draft_.work;
  decodes.prompt_tokens = decodes.prompt_pairs2 = 0;
  const Duration target = config_.target_inter_token;
  if (times_.Predict(decodes.WithChunk(0, kLeastPrefill)) <= target) return target;
  const Duration alone = times_.Predict(decodes);
  return std::max(target, alone + alone / 4);
}

void ModelGroup::AddChunk(ModelSequence& sequence, Time now, OutputReader& core_outputs) {
  const std::uint32_t left = sequence.PromptLeft();
  if (sequence.retiring || left == 0) return;
  const std::uint32_t wanted =
      sequence.planned < sequence.cut ? sequence.cut - sequence.planned : left;
  const Fit fit = FitOf(sequence.planned, wanted);
  const bool whole =
      config_.prefill == Prefill::kWhole && sequence.PromptLength() <= PrefillTokens();
  if (fit.count == 0 || (whole && fit.count < wanted)) return;
  if (!std::exchange(sequence.started, true)) {
    draft_.starts.push_back({sequence.sequence, sequence.id(), sequence.cached});
    if (store_.recurrent() && sequence.cached > 0) {
      Tell(sequence, BlockOp::Kind::kRestoreState, store_.Restore(sequence.blocks.back()));
    }
  }
  draft_.tokens_left -= fit.count;
  draft_.prefill_left -= fit.count;
  draft_.work = draft_.work.WithChunk(sequence.planned, fit.count);
  ModelStep::Rows segment{sequence.sequence, true, sequence.planned, fit.count};
  Grow(sequence, std::uint64_t{sequence.planned} + fit.count);
  sequence.planned += fit.count;
  const bool ends = sequence.PromptLeft() == 0;
  if (ends) segment.logits = Segment::Logits::kLast;
  if (sequence.WantsPromptLogprobs()) segment.logits = Segment::Logits::kAll;
  segment.most_tokens = ends && sequence.candidates() == 0 ? 1 : 0;
  CopyTail(sequence);
  Enter(sequence, draft_.step);
  if (sequence.planned == sequence.cut) SaveState(sequence);
  Pin(sequence, draft_.step);
  Name(sequence, segment);
  const bool for_snapshot = fit.count == wanted;
  if (ends || for_snapshot || std::exchange(sequence.chunked, true)) return;
  Decision decision = Say(sequence, DecisionKind::kChunked, now);
  decision.short_of = fit.short_of;
  decision.needed = left;
  decision.available = fit.count;
  decision.step = draft_.step;
  core_outputs.Expect(decision);
}

void ModelGroup::Tell(const ModelSequence& sequence, BlockOp::Kind kind, StoreSnapshot snapshot) {
  ModelStep::BlockChange change;
  change.sequence = sequence.sequence;
  change.kind = kind;
  change.snapshot = snapshot;
  draft_.blocks.push_back(change);
}

void ModelGroup::CopyTail(ModelSequence& sequence) {
  if (!sequence.tail_to_copy) return;
  const std::size_t index = sequence.cached / capacity_.block_size;
  ModelStep::BlockChange copy;
  copy.sequence = sequence.sequence;
  copy.block = sequence.blocks[index];
  copy.copy_of = sequence.tail_to_copy;
  draft_.blocks.push_back(copy);
  if (store_.window().present()) {
    copy.in_window = true;
    copy.copy_of = store_.window().Of(*sequence.tail_to_copy);
    if (!copy.copy_of) throw Difference{"a tail has no block of the window group"};
    copy.block = sequence.window.blocks[index].value_or(0);
    draft_.blocks.push_back(copy);
  }
  sequence.tail_to_copy.reset();
  store_.Protect(std::nullopt);
}

void ModelGroup::SaveState(const ModelSequence& sequence) {
  if (!store_.recurrent()) return;
  std::vector<TokenId> tokens = sequence.Tokens();
  tokens.resize(sequence.cut);
  const auto snapshot = store_.Save(sequence.root, tokens, draft_.step, sequence.sequence);
  if (snapshot) Tell(sequence, BlockOp::Kind::kSaveState, *snapshot);
}

// Draws blocks until they cover the positions, and names those that no plan has named.
void ModelGroup::Grow(ModelSequence& sequence, std::uint64_t positions) {
  while (sequence.blocks.size() * capacity_.block_size < positions) {
    if (sequence.reserved == 0) throw Difference{"a sequence grows beyond its reservation"};
    --sequence.reserved;
    sequence.blocks.push_back(store_.Draw());
  }
  for (; sequence.named_blocks < sequence.blocks.size(); ++sequence.named_blocks) {
    const bool drawn = sequence.named_blocks >= sequence.adopted;
    ModelStep::BlockChange change;
    change.sequence = sequence.sequence;
    change.block = sequence.blocks[sequence.named_blocks];
    change.drawn = drawn;
    draft_.blocks.push_back(change);
  }
  if (store_.window().present()) GrowWindow(sequence, positions);
}

// The plan and all later ones begin at the known positions or after them.
void ModelGroup::GrowWindow(ModelSequence& sequence, std::uint64_t positions) {
  WindowEntries& window = sequence.window;
  store_.window().MoveTo(sequence.Known(), window);
  const std::size_t before = window.blocks.size();
  while (window.blocks.size() * capacity_.block_size < positions) {
    if (window.held() == window.claim) throw Difference{"a sequence grows beyond its claim"};
    window.blocks.emplace_back(store_.DrawInWindow());
  }
  for (; window.named < window.blocks.size(); ++window.named) {
    const auto& entry = window.blocks[window.named];
    ModelStep::BlockChange change;
    change.sequence = sequence.sequence;
    change.block = entry.value_or(0);
    change.drawn = window.named >= before;
    change.in_window = true;
    change.none = !entry;
    draft_.blocks.push_back(change);
  }
}

void ModelGroup::Name(ModelSequence& sequence, const ModelStep::Rows& rows) {
  draft_.segments.push_back(rows);
  draft_.segments.back().sequence = sequence.sequence;
  sequence.tokens_in_flight += rows.most_tokens;
  ++sequence.plans_in_flight;
  sequence.last_plan = draft_.step;
}

void ModelGroup::Admit(ModelRequest request, SequenceId id, Time now, OutputReader& core_outputs) {
  batch_ = {request.prompt(), request.arrival.max_new_tokens};
  draft_.admitted = true;
  const StoreMatch match = Match(request, draft_.step);
  const std::uint32_t needed = BlocksToReserve(request) - BlocksInUse(match);
  const std::uint32_t available = AvailableBlocks();
  ModelSequence& sequence = Add(std::move(request), id, match);
  if (store_.sharing()) use_.looked_up_tokens += sequence.PromptLength();
  use_.hit_tokens += sequence.cached;
  Decision decision = Say(sequence, DecisionKind::kAdmitted, now);
  decision.needed = needed;
  decision.available = available;
  decision.step = draft_.step;
  core_outputs.Expect(decision);
  AddChunk(sequence, now, core_outputs);
  if (sequence.tail_to_copy) throw Difference{"a tail is not copied by the step that admits"};
}

bool ModelGroup::FinishStep(std::size_t waiting, bool ends_alone, OutputReader& core_outputs) {
  open_ = false;
  const bool only_ends = draft_.segments.empty();
  if (only_ends && !(ends_alone && in_flight_.empty() && !ended_.empty())) return false;
  steps_without_admission_ = draft_.admitted ? 1 : steps_without_admission_ + 1;
  draft_.ends = std::exchange(ended_, {});
  if (padded() || capacity_.padded_attention) {
    for (std::uint32_t i = 0; i < draft_.segments.size(); ++i) {
      if (draft_.segments[i].prompt) draft_.groups.push_back({{i}, {}, 0});
    }
  }
  Describe(waiting);
  const std::size_t plan = core_outputs.TakePlan(id());
  comparison_.Compare(draft_, epoch_, core_outputs.out().plans[plan],
                      core_outputs.out().steps[plan]);
  InFlight& step = in_flight_.emplace_back();
  step.step = draft_.step;
  step.predicted = draft_.info.predicted;
  for (const ModelStep::Rows& rows : draft_.segments) {
    step.named.emplace_back(rows.sequence, rows.most_tokens);
  }
  draft_.step = StepId(draft_.step.value() + 1);
  return true;
}

void ModelGroup::Describe(std::size_t waiting) {
  scheduler::StepInfo& info = draft_.info;
  info.group = id();
  info.step = draft_.step;
  info.decode_rows = static_cast<std::uint32_t>(draft_.work.decode_rows);
  info.prefill_tokens = static_cast<std::uint32_t>(draft_.work.prompt_tokens);
  info.sequences = static_cast<std::uint32_t>(draft_.segments.size());
  info.waiting = static_cast<std::uint32_t>(waiting);
  info.blocks_free = store_.free();
  info.blocks_used = store_.used();
  info.blocks_cached = store_.cached();
  info.blocks_retiring = store_.retiring();
  info.window_blocks_free = store_.window().free();
  info.window_blocks_used = store_.window().used();
  info.window_blocks_cached = store_.window().cached();
  info.window_blocks_retiring = store_.window().retiring();
  info.predicted = times_.Predict(draft_.work);
  if (!rows_.empty()) info.resplit = std::exchange(renewed_, false);
  use_.evicted_blocks = store_.TakeEvictions();
  info.prefix = std::exchange(use_, {});
}

// --- Results

void ModelGroup::OnResult(const StepResult& result, Time now, OutputReader& core_outputs) {
  if (in_flight_.empty() || in_flight_.front().step != result.step) return;
  const InFlight done = std::move(in_flight_.front());
  in_flight_.pop_front();
  times_.Observe(done.predicted, result.timings.forward + result.timings.sample);
  for (const auto& [id, most] : done.named) {
    ModelSequence& sequence = sequences_.at(id);
    sequence.tokens_in_flight -= most;
    --sequence.plans_in_flight;
    if (sequence.padded_since == done.step) ReclaimBlocks(sequence);
  }
  for (const SequenceResult& part : result.sequences) TakePart(part, now, core_outputs);
  for (const auto& [id, most] : done.named) Recompute(sequences_.at(id), now, core_outputs);
  for (const auto& [id, most] : done.named) {
    const auto it = sequences_.find(id);
    if (it != sequences_.end() && it->second.retiring) ReclaimUnnamed(id, now, core_outputs);
  }
}

void ModelGroup::TakePart(const SequenceResult& part, Time now, OutputReader& core_outputs) {
  const auto it = sequences_.find(part.sequence);
  if (it == sequences_.end()) return;
  ModelSequence& sequence = it->second;
  if (part.finish == ShardFinish::kError) {
    sequence.Close();
    const bool own = sequence.entered > sequence.adopted;
    store_.Invalidate(own ? std::optional(sequence.blocks[sequence.adopted]) : std::nullopt,
                      sequence.sequence);
  }
  if (sequence.retiring && !sequence.preempted) return;
  const std::size_t before = sequence.received();
  for (const SampledToken& token : part.tokens) {
    if (sequence.received() < sequence.Last()) sequence.generated.push_back(token.token);
  }
  if (sequence.received() > before) Enter(sequence, sequence.last_plan);
  const bool all = sequence.received() == before + part.tokens.size();
  const bool failed = all && part.finish == ShardFinish::kError;
  const bool ends = all && part.finish != ShardFinish::kNone;
  if (!ends && sequence.received() < sequence.Last()) return;
  const bool by_length = sequence.received() >= sequence.Last();
  if (!failed || by_length) lengths_.Learn(sequence.arrival, sequence.received());
  Finish(sequence, now, core_outputs);
}

}  // namespace penstock::sim
