#include "scheduler/group_scheduler.h"

#include <algorithm>
#include <utility>

#include "scheduler/check.h"

namespace penstock::scheduler {
namespace {

// Where two reasons meet at the same position the order is length, EOS or stop token, stop string
// (TGI's order); a lower position always wins, since tokens beyond it are cut before.
std::optional<FinishReason> ReasonToFinish(const Sequence& sequence, ShardFinish shard) {
  if (sequence.tokens_received >= sequence.request.max_new_tokens) return FinishReason::kLength;
  if (shard == ShardFinish::kLength) return FinishReason::kLength;
  if (shard == ShardFinish::kEos) return FinishReason::kEos;
  if (shard == ShardFinish::kStopToken) return FinishReason::kStopToken;
  if (sequence.finish_at && sequence.tokens_received >= *sequence.finish_at) {
    return FinishReason::kStopString;
  }
  return std::nullopt;
}

// A static batch admits more than one step starts; what they would hold from the cache until then,
// nobody could evict. It is there for comparison, with what request-level batching has.
bool SharesPrefixes(const Config& config, const GroupCapacity& capacity) {
  return config.prefix_caching && capacity.shares_blocks && config.batching != Batching::kStatic;
}

}  // namespace

GroupScheduler::GroupScheduler(const Config& config, const GroupUp& up, OutputLengths& lengths)
    : config_(config),
      id_(up.group),
      epoch_(up.epoch),
      capacity_(up.capacity),
      lengths_(lengths),
      admission_(MakeAdmissionPolicy(config, up.capacity, lengths)),
      growth_(config, up.capacity),
      table_(up.capacity, SharesPrefixes(config, up.capacity),
             {config.pinned_prefixes, config.pinned_blocks}),
      sharing_(table_),
      cost_(up.calibration),
      decode_groups_({config.split, config.max_splits, config.max_sparsity_ppm}, up.capacity.cells),
      cell_bound_(config.max_splits),
      gate_(config),
      batch_(config) {}

Decision GroupScheduler::MakeDecision(Time at, const Sequence& sequence, DecisionKind kind) const {
  Decision decision;
  decision.group = id_;
  decision.at = at;
  decision.request = sequence.request.request;
  decision.kind = kind;
  return decision;
}

std::optional<RequestId> GroupScheduler::OldestRunning() const {
  const Sequence* oldest = table_.Oldest();
  if (oldest == nullptr) return std::nullopt;
  return oldest->request.request;
}

std::optional<Refusal> GroupScheduler::WhyNeverFits(const Arrival& arrival) const {
  return admission_->WhyNeverFits(arrival);
}

GroupState GroupScheduler::StateFor(const Work& work) const {
  const PrefixMatch match = sharing_.Match(work, NextStep());
  GroupState state;
  state.blocks_available = table_.pool().available();
  state.blocks_shared = match.blocks - match.unlocked;
  state.slots_available = table_.slots().available();
  state.running = table_.running();
  state.decode_rows = DecodeRows();
  state.reserved_tokens = table_.reserved_tokens();
  state.blocks_kept_free = kept_free_;
  state.cells_needed = CellsNeeded(work, {});
  return state;
}

GroupScheduler::Trial GroupScheduler::BeginTrial() const {
  Trial trial;
  trial.prefill_left = draft_->composer.Fit(0, UINT32_MAX).count;
  return trial;
}

bool GroupScheduler::Join(Trial& trial, const Work& work) const {
  const std::uint64_t prompt = work.request.prompt.size() + work.generated.size();
  GroupState state = StateFor(work);
  state.blocks_kept_free += trial.blocks;
  state.reserved_tokens += trial.tokens;
  state.running += trial.joined;
  state.decode_rows += trial.rows;
  state.slots_available -= std::min(state.slots_available, trial.joined);
  if (trial.joined > 0) state.cells_needed = CellsNeeded(work, trial.positions);
  if (prompt > trial.prefill_left || admission_->Check(work, state)) return false;
  trial.prefill_left -= prompt;
  trial.blocks += admission_->BlocksToReserve(work) - state.blocks_shared;
  trial.tokens += admission_->TokensToReserve(work);
  trial.rows += admission_->DecodeRows(work);
  trial.positions.push_back(AdmissionPolicy::WorstCaseTokens(work.request));
  ++trial.joined;
  return true;
}

std::optional<Shortage> GroupScheduler::Check(const Work& work) const {
  const std::uint32_t running = table_.running();
  if (const auto closed = batch_.Check(work, running)) return closed;
  return admission_->Check(work, StateFor(work));
}

void GroupScheduler::BeginStep(Time now, Outputs& out) {
  PENSTOCK_CHECK(CanPlan(), "at most pipeline_depth plans are in flight");
  const StepBudget budget = MakeStepBudget(config_, capacity_.max_step_tokens);
  const StepTimeLimit limit{&cost_, config_.target_inter_token};
  if (!draft_) draft_.emplace(Draft{StepComposer(budget, config_.prefill), StepPlan{}, {}, {}, {}});
  draft_->Restart(budget, limit);
  if (draft_->named.capacity() == 0) draft_->named.swap(spare_named_);
  batch_.BeginStep(table_.running());
  most_rows_ = MostRows(budget.step_tokens);
  MakeRoom(now, out);
  bool prompts = false;
  for (auto& [id, sequence] : table_.all()) {
    AddDecode(sequence, now, out);
    KeepRow(sequence);
    prompts = prompts || sequence.PromptLeft() > 0;
  }
  SplitDecodes(now, out);
  KeepFree();
  if (!prompts) return;  // as in most steps
  for (auto& [id, sequence] : table_.all()) AddChunk(sequence, now, out);
}

void GroupScheduler::AddDecode(Sequence& sequence, Time now, Outputs& out) {
  const std::uint32_t wanted = sequence.NextDecodeRows(most_rows_);
  if (wanted == 0 || !Secure(sequence, now, out)) return;
  const std::uint64_t context = sequence.PositionsAfter(sequence.TokensOfDecode(wanted));
  const std::uint32_t least = std::max(1u, sequence.Candidates());
  const std::uint32_t rows = draft_->composer.AddDecode(sequence.slot, wanted, context, least);
  if (rows == 0) return;
  const std::uint32_t tokens = sequence.TokensOfDecode(rows);
  if (capacity_.cells == 0) {
    const std::uint64_t positions = sequence.PositionsAfter(tokens);
    sequence.blocks.GrowTo(table_.cache(), positions, sequence.slot, draft_->plan.block_ops);
  }
  AddRow(sequence, context, rows);
  Name(sequence, tokens);
}

void GroupScheduler::AddChunk(Sequence& sequence, Time now, Outputs& out) {
  if (sequence.retiring || sequence.PromptLeft() == 0) return;
  const PrefillDemand demand{sequence.slot, sequence.prompt_planned, sequence.PromptLeft(),
                             sequence.WantsPromptLogprobs(), !FitsOneStep(sequence.PromptLength())};
  const PrefillFit fit = draft_->composer.AddPrefill(demand);
  const std::uint32_t count = fit.count;
  if (count == 0) return;
  if (!sequence.started) Start(sequence, out);
  sequence.prompt_planned += count;
  sequence.blocks.GrowTo(table_.cache(), sequence.prompt_planned, sequence.slot,
                         draft_->plan.block_ops);
  CopyTail(sequence);
  sharing_.Enter(sequence, NextStep());
  sharing_.Keep(sequence, NextStep());
  const bool samples = sequence.Candidates() == 0;
  Name(sequence, sequence.PromptLeft() == 0 && samples ? 1 : 0);
  if (sequence.PromptLeft() == 0 || sequence.chunked) return;

  sequence.chunked = true;
  Decision decision = MakeDecision(now, sequence, DecisionKind::kChunked);
  decision.short_of = fit.short_of;
  decision.needed = demand.remaining;
  decision.available = count;
  decision.step = NextStep();
  out.decisions.push_back(decision);
}

// The block that the first row writes begins with what a kept prefix ends with.
void GroupScheduler::CopyTail(Sequence& sequence) {
  if (!sequence.copies) return;
  BlockOp op;
  op.kind = BlockOp::Kind::kCopy;
  op.slot = sequence.slot;
  op.src = *std::exchange(sequence.copies, std::nullopt);
  op.dst = sequence.blocks.blocks()[sequence.cached_length / capacity_.block_size];
  draft_->plan.block_ops.push_back(op);
  table_.cache().FinishTail();
}

void GroupScheduler::TellPins(Outputs& out) {
  for (PinChange& change : table_.cache().TakePinChanges()) {
    change.group = id_;
    out.pins.push_back(change);
  }
}

void GroupScheduler::Start(Sequence& sequence, Outputs& out) {
  const Arrival& request = sequence.request;
  const std::uint32_t resumed = sequence.resumed;
  sequence.started = true;
  SequenceStart start;
  start.slot = sequence.slot;
  start.sequence = sequence.id;
  start.prompt = request.prompt;
  start.prompt.insert(start.prompt.end(), sequence.generated.begin(), sequence.generated.end());
  start.prompt_length = sequence.PromptLength();
  start.cached_length = sequence.cached_length;
  start.sample_index_base = resumed;
  start.sampling = request.sampling;
  start.logprobs = request.logprobs;
  start.logprobs.prompt_logprobs = sequence.WantsPromptLogprobs();
  start.stop_token_ids = request.stop_token_ids;
  start.ignore_eos = request.ignore_eos;
  start.min_new_tokens = request.min_new_tokens - std::min(request.min_new_tokens, resumed);
  start.max_new_tokens = request.max_new_tokens - resumed;
  start.grammar = request.grammar;
  start.trace_id = request.trace_id;
  draft_->plan.starts.push_back(std::move(start));
  draft_->requests.push_back(request.request);
  if (std::exchange(sequence.told, true)) return;
  out.AddEvent(request.request,
               Started{static_cast<std::uint32_t>(request.prompt.size()), sequence.cached_length});
}

void GroupScheduler::Name(Sequence& sequence, std::uint32_t most_tokens) {
  sequence.tokens_in_flight += most_tokens;
  ++sequence.plans_in_flight;
  sequence.last_plan = NextStep();
  draft_->named.push_back({sequence.id, sequence.slot, most_tokens});
}

bool GroupScheduler::FitsOneStep(std::uint64_t prompt) const {
  return prompt <= MakeStepBudget(config_, capacity_.max_step_tokens).prefill_tokens;
}

std::optional<Shortage> GroupScheduler::CheckStep(const Work& work) const {
  if (config_.batching == Batching::kStatic) return std::nullopt;  // chunks follow in later steps
  const StepComposer& composer = draft_->composer;
  const std::uint32_t cached = CachedTokens(work);
  const std::uint64_t length = work.request.prompt.size() + work.generated.size();
  const bool whole = config_.prefill == Prefill::kWhole && FitsOneStep(length);
  const std::uint64_t prompt = length - cached;
  const std::uint64_t needed = whole ? prompt : 1;
  const PrefillFit fit = composer.Fit(cached, static_cast<std::uint32_t>(needed));
  if (fit.count >= needed) return std::nullopt;
  return Shortage{fit.short_of, prompt, fit.count};
}

std::optional<PrefixSharing::Join> GroupScheduler::CheckJoin(const Work& work) const {
  return sharing_.WhatToAwait(work, NextStep());
}

void GroupScheduler::Admit(Work work, SequenceId id, Time now, Outputs& out) {
  batch_.Joined(work);
  draft_->joined = true;
  const std::uint64_t tokens = admission_->TokensToReserve(work);
  const std::uint32_t blocks = admission_->BlocksToReserve(work);
  const PrefixMatch match = sharing_.Match(work, NextStep());
  const std::uint32_t available = table_.pool().available();
  Sequence& sequence = table_.Add(std::move(work), id, blocks, tokens, match);
  if (table_.cache().sharing()) prefix_use_.looked_up_tokens += sequence.PromptLength();
  prefix_use_.hit_tokens += sequence.cached_length;
  Decision decision = MakeDecision(now, sequence, DecisionKind::kAdmitted);
  decision.needed = blocks - (match.blocks - match.unlocked);
  decision.available = available;
  decision.step = NextStep();
  out.decisions.push_back(decision);
  AddChunk(sequence, now, out);
  if (!sequence.copies) return;
  // No room in this step after all: the tail may be gone at the next one.
  sequence.copies.reset();
  table_.cache().FinishTail();
  sequence.cached_length -= sequence.cached_length % capacity_.block_size;
  sequence.prompt_planned = sequence.cached_length;
}

bool GroupScheduler::FinishStep(std::uint32_t waiting, bool ends_alone, Outputs& out) {
  Draft& draft = *draft_;
  batch_.EndStep();
  const bool only_ends = draft.composer.empty();
  // While a plan is in flight, ends wait for company: its result makes the next plan.
  const bool told_alone = ends_alone && in_flight_.empty() && table_.slots().has_ends();
  if (only_ends && !told_alone) return false;

  gate_.StepMade(draft.joined);
  last_step_ = NextStep();
  draft.plan.epoch = epoch_;
  draft.plan.step = last_step_;
  draft.plan.ends = table_.slots().TakeEnds();
  draft.composer.TakeSegments(draft.plan.segments);
  GroupPrompts(draft);
  const Duration predicted = cost_.Predict(draft.composer.shape());
  in_flight_.push_back({last_step_, predicted, std::move(draft.named)});

  StepInfo info;
  info.predicted = predicted;
  if (!draft.decodes.empty()) {
    info.decode_parts = decode_groups_.parts();
    info.decode_cells = decode_groups_.Cells();
    info.decode_tokens = decode_groups_.Tokens();
    info.resplit = draft.resplit;
  }
  const std::uint64_t evictions = table_.cache().index().evictions();
  prefix_use_.evicted_blocks = evictions - std::exchange(evictions_told_, evictions);
  info.prefix = std::exchange(prefix_use_, {});
  info.group = id_;
  info.step = last_step_;
  info.decode_rows = draft.composer.decode_rows();
  info.prefill_tokens = draft.composer.prefill_tokens();
  info.sequences = static_cast<std::uint32_t>(draft.plan.segments.size());
  info.waiting = waiting;
  info.blocks_free = table_.pool().free();
  info.blocks_used = table_.pool().used();
  info.blocks_cached = table_.pool().cached();
  info.blocks_retiring = table_.pool().retiring();
  const std::uint32_t counted =
      info.blocks_free + info.blocks_used + info.blocks_cached + info.blocks_retiring;
  PENSTOCK_CHECK(counted == table_.pool().total(), "free + used + cached + retiring = total");
  PENSTOCK_CHECK(info.decode_rows + info.prefill_tokens <= config_.max_step_tokens,
                 "no step exceeds its token budget");
  out.steps.push_back(info);
  out.AddPlan(id_, draft.plan, draft.requests);
  return true;
}

void GroupScheduler::OnResult(const StepResult& result, Time now, Outputs& out) {
  if (in_flight_.empty() || in_flight_.front().step != result.step) return;
  InFlight done = std::move(in_flight_.front());
  in_flight_.erase(in_flight_.begin());
  cost_.Observe(done.predicted, result.timings.forward + result.timings.sample);
  for (const Named& named : done.named) {
    Sequence* sequence = table_.Find(named.slot, named.sequence);
    PENSTOCK_CHECK(sequence != nullptr, "a sequence lives while a plan in flight names it");
    sequence->tokens_in_flight -= named.most_tokens;
    --sequence->plans_in_flight;
    if (sequence->joined == done.step) sequence->blocks.Reclaim(table_.cache(), sequence->id);
  }
  for (const SequenceResult& part : result.sequences) TakeResult(part, now, out);
  for (const Named& named : done.named) {
    if (table_.retiring() == 0) break;
    Sequence* sequence = table_.Find(named.slot, named.sequence);
    if (sequence != nullptr && sequence->retiring) ReclaimIfUnnamed(*sequence, now, out);
  }
  done.named.clear();
  spare_named_.swap(done.named);
}

void GroupScheduler::TakeResult(const SequenceResult& result, Time now, Outputs& out) {
  Sequence* sequence = table_.Find(result.slot, result.sequence);
  // A surplus row of a sequence that ended meanwhile is computed but never reported.
  if (sequence == nullptr || sequence->slot != result.slot) return;
  // What is in flight for a preempted sequence counts; it goes on from there.
  if (sequence->retiring && !sequence->preempted) return;

  const std::uint32_t last =
      std::min(sequence->request.max_new_tokens, sequence->finish_at.value_or(UINT32_MAX));
  const auto given = static_cast<std::uint32_t>(result.tokens.size());
  const std::uint32_t count = std::min(given, last - sequence->tokens_received);
  ReportTokens(*sequence, result, count, out);

  const bool all_taken = count == given;
  const ShardFinish shard = all_taken ? result.finish : ShardFinish::kNone;
  if (const auto reason = ReasonToFinish(*sequence, shard)) {
    Finish(*sequence, *reason, sequence->tokens_received, now, out);
  } else if (shard == ShardFinish::kError) {
    sequence->blocks.Spoil(table_.cache(), sequence->id);
    Fail(*sequence, FailureKind::kShardError, result.error, now, out);
  }
}

void GroupScheduler::ReportTokens(Sequence& sequence, const SequenceResult& result,
                                  std::uint32_t count, Outputs& out) {
  const RequestId request = sequence.request.request;
  sequence.prompt_logprobs.insert(sequence.prompt_logprobs.end(), result.prompt_logprobs.begin(),
                                  result.prompt_logprobs.end());
  if (count == 0) return;
  if (sequence.tokens_received == 0 && sequence.request.logprobs.prompt_logprobs) {
    out.AddEvent(request, PromptLogprobs{std::move(sequence.prompt_logprobs)});
  }
  Event& event = out.events.emplace_back();
  event.request = request;
  auto& tokens = event.what.emplace<Tokens>();  // in its place: this runs for every row
  tokens.first_index = sequence.tokens_received;
  for (std::uint32_t i = 0; i < count; ++i) {
    tokens.tokens.emplace_back(result.tokens[i]);
    sequence.generated.push_back(result.tokens[i].token);
  }
  sequence.tokens_received += count;
  sharing_.Enter(sequence, sequence.last_plan);
}

bool GroupScheduler::Cancel(RequestId request, Time now, Outputs& out) {
  Sequence* sequence = table_.FindRunning(request);
  if (sequence == nullptr) return false;
  Finish(*sequence, FinishReason::kCancelled, sequence->tokens_received, now, out);
  ReclaimIfUnnamed(*sequence, now, out);
  return true;
}

bool GroupScheduler::FinishAt(RequestId request, std::uint32_t token_count, Time now,
                              Outputs& out) {
  Sequence* sequence = table_.FindRunning(request);
  if (sequence == nullptr) return false;
  if (token_count > sequence->tokens_received) {
    sequence->finish_at = std::min(token_count, sequence->finish_at.value_or(UINT32_MAX));
    return true;
  }
  Finish(*sequence, FinishReason::kStopString, token_count, now, out);
  ReclaimIfUnnamed(*sequence, now, out);
  return true;
}

void GroupScheduler::Finish(Sequence& sequence, FinishReason reason, std::uint32_t tokens, Time now,
                            Outputs& out) {
  out.AddEvent(sequence.request.request, Finished{reason, tokens});
  if (reason != FinishReason::kCancelled) lengths_.Learn(sequence.request, tokens);
  Retire(sequence, now, out);
}

void GroupScheduler::Fail(Sequence& sequence, FailureKind kind, std::string message, Time now,
                          Outputs& out) {
  out.AddEvent(sequence.request.request, Failed{kind, std::move(message)});
  Retire(sequence, now, out);
}

void GroupScheduler::Retire(Sequence& sequence, Time now, Outputs& out) {
  table_.Retire(sequence);
  Decision decision = MakeDecision(now, sequence, DecisionKind::kFinished);
  if (sequence.started) decision.step = sequence.last_plan;
  out.decisions.push_back(decision);
}

void GroupScheduler::ReclaimIfUnnamed(Sequence& sequence, Time now, Outputs& out) {
  if (sequence.plans_in_flight > 0) return;
  Decision decision = MakeDecision(now, sequence, DecisionKind::kRetired);
  if (sequence.started) decision.step = sequence.last_plan;
  decision.available = sequence.blocks.blocks().size();
  out.decisions.push_back(decision);
  if (sequence.preempted) {
    preempted_.push_back(table_.Requeue(sequence));
  } else {
    table_.Reclaim(sequence);
  }
}

void GroupScheduler::Lose(const std::string& reason, Time now, Outputs& out) {
  for (auto& [id, sequence] : table_.all()) {
    if (sequence.preempted) preempted_.push_back(std::move(static_cast<Work&>(sequence)));
    if (!sequence.retiring) Fail(sequence, FailureKind::kGroupLost, reason, now, out);
  }
  table_.cache().ForgetAll();
  TellPins(out);
}

void GroupScheduler::AddTo(Snapshot& sum) const {
  sum.running += table_.running();
  sum.retiring += table_.retiring();
  sum.blocks_free += table_.pool().free();
  sum.blocks_used += table_.pool().used();
  sum.blocks_cached += table_.pool().cached();
  sum.blocks_retiring += table_.pool().retiring();
  sum.blocks_total += table_.pool().total();
  sum.plans_in_flight += static_cast<std::uint32_t>(in_flight_.size());
}

}  // namespace penstock::scheduler
