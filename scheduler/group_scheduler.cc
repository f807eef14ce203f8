#include "scheduler/group_scheduler.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "scheduler/decide.h"

namespace penstock::scheduler {
namespace {

// Several reasons can hold at one position. Then the order is length, EOS or a stop token, and a
// stop string, as in TGI. A reason at a lower position always wins, since later tokens are
// cut off first.
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

// A static batch admits more requests than one step starts. Cached blocks that they held until they
// start could not be evicted, so static batches do without the prefix cache.
bool SharesPrefixes(const Config& config, const GroupCapacity& capacity) {
  return config.prefix_caching && capacity.shares_blocks && config.batching != Batching::kStatic;
}

}  // namespace

GroupScheduler::GroupScheduler(const Config& config, const GroupUp& up, OutputLengths& lengths)
    : config_(config),
      id_(up.group),
      epoch_(up.epoch),
      arithmetic_class_(up.arithmetic_class),
      capacity_(up.capacity),
      budget_(MakeStepBudget(config, up.capacity.max_step_tokens)),
      policy_(MakeAdmissionPolicy(config, up.capacity, lengths)),
      table_(up.capacity, SharesPrefixes(config, up.capacity),
             {config.pinned_prefixes, config.pinned_blocks}),
      regime_(up.capacity),
      sharing_(table_, regime_),
      retirement_(up.group, table_, lengths),
      preemption_(config, up, *policy_, table_, retirement_),
      layout_(config, up, table_),
      draft_(config.prefill),
      admission_(config, up.capacity, *policy_, {table_, sharing_, preemption_, draft_, layout_}),
      cost_(up.calibration) {}

std::optional<RequestId> GroupScheduler::OldestRunning() const {
  const Sequence* oldest = table_.Oldest();
  if (oldest == nullptr) return std::nullopt;
  return oldest->request.request;
}

// Every decode has one row. Drafts and forced tokens share equally what is left of kVerifiedRows
// and of the step's budget.
std::uint32_t GroupScheduler::MaxRows(std::uint32_t step_tokens) const {
  const SequenceTable::Contrastive& contrastive = table_.contrastive();
  const std::uint32_t plain = table_.running() - contrastive.sequences;
  const std::uint32_t most = std::max(config_.max_decode_rows, 1 + capacity_.forced_tokens);
  if (most == 1 || plain == 0) return 1;
  const std::uint32_t rows = std::min(kVerifiedRows, step_tokens);
  const std::uint32_t share = (rows - std::min(rows, contrastive.candidates)) / plain;
  return std::clamp(share, 1u, most);
}

// If there is no room for the request that is due, all that were admitted as due and had their
// quantum make room.
void GroupScheduler::YieldTo(const WaitingRequest& due, Time now, Outputs& out) {
  if (config_.batching != Batching::kContinuous || !admission_.Check(due)) return;
  std::vector<Sequence*> done;
  for (auto& [id, sequence] : table_.all()) {
    const std::uint32_t tokens = sequence.tokens_received - sequence.resumed;
    const bool had_quantum = sequence.due && tokens >= config_.starvation_quantum;
    if (had_quantum && !sequence.retiring) done.push_back(&sequence);
  }
  for (Sequence* sequence : done) {
    preemption_.Yield(*sequence, due.request.request, draft_.step(), now, out);
  }
}

void GroupScheduler::BeginStep(const WaitingRequest* due, Time now, Outputs& out) {
  PENSTOCK_CHECK(CanPlan(), "at most pipeline_depth plans are in flight");
  draft_.Begin(budget_, {&cost_, config_.target_inter_token});
  layout_.BeginStep();
  admission_.BeginStep();
  if (due != nullptr) YieldTo(*due, now, out);
  max_rows_ = MaxRows(budget_.step_tokens);
  preemption_.BeginStep(max_rows_, draft_.step(), now, out);
  bool prompts = false;
  for (auto& [id, sequence] : table_.all()) {
    AddDecode(sequence, now, out);
    layout_.KeepRow(sequence);
    prompts = prompts || sequence.PromptLeft() > 0;
  }
  layout_.SplitDecodes(cost_, draft_, now, out);
  preemption_.UpdateHeadroom();
  if (!prompts) return;  // as in most steps
  for (auto& [id, sequence] : table_.all()) AddChunk(sequence, now, out);
}

// The plan and all later ones begin at the known length or after it. Plans run in order, so blocks
// before its window can be written by other sequences in this plan.
void GroupScheduler::Grow(Sequence& sequence, std::uint64_t positions) {
  BlockCache& cache = table_.cache();
  std::vector<BlockOp>& ops = draft_.plan().block_ops;
  sequence.blocks.GrowTo(cache, positions, sequence.slot, ops);
  if (cache.window_tokens() == 0) return;
  sequence.window.MoveTo(cache, sequence.KnownLength());
  sequence.window.GrowTo(cache, positions, sequence.slot, ops);
}

void GroupScheduler::AddDecode(Sequence& sequence, Time now, Outputs& out) {
  const std::uint32_t wanted = sequence.NextDecodeRows(max_rows_);
  if (wanted == 0 || !preemption_.Reserve(sequence, now, out)) return;
  const std::uint64_t context = sequence.PositionsAfter(sequence.TokensOfDecode(wanted));
  const std::uint32_t least = std::max(1u, sequence.Candidates());
  const std::uint32_t rows = draft_.composer().AddDecode(sequence.slot, wanted, context, least);
  if (rows == 0) return;
  const std::uint32_t tokens = sequence.TokensOfDecode(rows);
  if (!layout_.stores_rows()) {
    const std::uint64_t positions = sequence.PositionsAfter(tokens);
    Grow(sequence, positions);
  }
  layout_.AddDecode(sequence, context, rows, draft_);
  draft_.Refer(sequence, tokens);
}

void GroupScheduler::AddChunk(Sequence& sequence, Time now, Outputs& out) {
  if (sequence.retiring || sequence.PromptLeft() == 0) return;
  const bool may_split = sequence.PromptLength() > budget_.prefill_tokens;
  const PrefillDemand demand{.slot = sequence.slot,
                             .first = sequence.prompt_planned,
                             .remaining = sequence.PromptLeft(),
                             .prompt_logprobs = sequence.WantsPromptLogprobs(),
                             .may_split = may_split,
                             .most = sequence.ChunkEnd() - sequence.prompt_planned};
  const PrefillFit fit = draft_.composer().AddPrefill(demand);
  if (fit.count == 0) return;
  if (!sequence.started) draft_.Start(sequence, out);
  draft_.RestoreState(sequence, table_.cache());
  Grow(sequence, std::uint64_t{sequence.prompt_planned} + fit.count);
  sequence.prompt_planned += fit.count;
  draft_.CopyTail(sequence, table_.cache());
  sharing_.Enter(sequence, draft_.step());
  SaveState(sequence);
  sharing_.Pin(sequence, draft_.step());
  const bool samples = sequence.Candidates() == 0;
  draft_.Refer(sequence, sequence.PromptLeft() == 0 && samples ? 1 : 0);
  const bool for_snapshot = fit.short_of == Budget::kNone;
  if (sequence.PromptLeft() == 0 || for_snapshot || std::exchange(sequence.chunked, true)) return;
  Decision& decision = Decide(id_, sequence, DecisionKind::kChunked, now, out);
  decision.short_of = fit.short_of;
  decision.needed = demand.remaining;
  decision.available = fit.count;
  decision.step = draft_.step();
}

// Where it parts from cached blocks that go further than its match: its own blocks after them do
// not enter the index. Otherwise at its last full block.
void GroupScheduler::SetCut(Sequence& sequence, const PrefixMatch& match) const {
  if (!table_.cache().recurrent()) return;
  const std::uint32_t last = (sequence.PromptLength() - 1) / capacity_.block_size;
  const std::uint32_t cut = match.found > match.blocks ? match.found : last;
  if (cut > match.blocks) sequence.cut = cut * capacity_.block_size;
}

void GroupScheduler::SaveState(const Sequence& sequence) {
  if (sequence.prompt_planned != sequence.cut) return;
  const auto node = sharing_.NodeAt(sequence, sequence.prompt_planned);
  if (node) draft_.SaveState(sequence, *node, table_.cache());
}

void GroupScheduler::Admit(Work work, SequenceId id, Time now, Outputs& out) {
  admission_.OnAdmitted(work);
  work.arithmetic_class = arithmetic_class_;
  draft_.set_admitted();
  const std::uint64_t tokens = policy_->TokensToReserve(work);
  const SequenceTable::Reservation reservation{policy_->BlocksToReserve(work),
                                               policy_->WindowBlocksFor(tokens), tokens};
  const PrefixMatch match = sharing_.Match(work, draft_.step());
  const std::uint32_t available = table_.pool().available();
  std::string root = regime_.Root(work);
  const std::uint32_t most_positions = regime_.MostPositions(work);
  Sequence& sequence = table_.Add(std::move(work), id, reservation, match);
  sequence.prefix_root = std::move(root);
  sequence.most_positions = most_positions;
  sequence.most_rows = AdmissionPolicy::MostDecodeRows(config_, capacity_, sequence.request);
  SetCut(sequence, match);
  if (table_.cache().sharing()) prefix_use_.looked_up_tokens += sequence.PromptLength();
  prefix_use_.hit_tokens += sequence.cached_length;
  if (!sequence.ran()) sequence.account->Charge(kPromptWork * sequence.PromptLeft());
  Decision& decision = Decide(id_, sequence, DecisionKind::kAdmitted, now, out);
  decision.needed = reservation.blocks - (match.blocks - match.unlocked);
  decision.available = available;
  decision.step = draft_.step();
  AddChunk(sequence, now, out);
  PENSTOCK_CHECK(!sequence.tail_to_copy, "the step that admits a request copies the tail it finds");
}

bool GroupScheduler::FinishStep(std::uint32_t waiting, bool ends_alone, Outputs& out) {
  const bool only_ends = draft_.composer().empty();
  // With a plan in flight, ends wait for the next plan that computes: its result leads to one.
  const bool may_end_alone = ends_alone && in_flight_.empty() && table_.slots().has_ends();
  const bool made = !only_ends || may_end_alone;
  admission_.EndStep(made);
  if (!made) return false;
  StepPlan& plan = draft_.plan();
  plan.ends = table_.slots().TakeEnds();
  draft_.composer().TakeSegments(plan.segments);
  layout_.AddPrompts(plan);
  const Duration predicted = cost_.Predict(draft_.composer().shape());
  in_flight_.Add(draft_.step(), predicted, draft_.references());
  out.steps.push_back(DescribeStep(waiting, predicted));
  draft_.Finish(id_, epoch_, out);
  return true;
}

StepInfo GroupScheduler::DescribeStep(std::uint32_t waiting, Duration predicted) {
  StepInfo info;
  info.predicted = predicted;
  layout_.Describe(info);
  const std::uint64_t evictions = table_.cache().index().evictions();
  prefix_use_.evicted_blocks = evictions - std::exchange(evictions_reported_, evictions);
  info.prefix = std::exchange(prefix_use_, {});
  info.group = id_;
  info.step = draft_.step();
  info.decode_rows = draft_.composer().decode_rows();
  info.prefill_tokens = draft_.composer().prefill_tokens();
  info.sequences = static_cast<std::uint32_t>(draft_.plan().segments.size());
  info.waiting = waiting;
  info.blocks_free = table_.pool().free();
  info.blocks_used = table_.pool().used();
  info.blocks_cached = table_.pool().cached();
  info.blocks_retiring = table_.pool().retiring();
  const BlockPool& window = table_.cache().window().pool();
  info.window_blocks_free = window.free();
  info.window_blocks_used = window.used();
  info.window_blocks_cached = window.cached();
  info.window_blocks_retiring = window.retiring();
  const std::uint32_t counted =
      info.blocks_free + info.blocks_used + info.blocks_cached + info.blocks_retiring;
  PENSTOCK_CHECK(counted == table_.pool().total(), "free + used + cached + retiring = total");
  PENSTOCK_CHECK(info.decode_rows + info.prefill_tokens <= config_.max_step_tokens,
                 "no step exceeds its token budget");
  return info;
}

void GroupScheduler::OnResult(const StepResult& result, Time now, Outputs& out) {
  std::optional<StepInFlight> done = in_flight_.Take(result.step);
  if (!done) return;
  cost_.Observe(done->predicted, result.timings.forward + result.timings.sample);
  for (const InFlightReference& reference : done->references) {
    Sequence* sequence = table_.Find(reference.slot, reference.sequence);
    PENSTOCK_CHECK(sequence != nullptr, "a sequence lives while a plan in flight refers to it");
    sequence->tokens_in_flight -= reference.max_tokens;
    --sequence->plans_in_flight;
    layout_.OnResult(*sequence, done->step);
  }
  for (const SequenceResult& part : result.sequences) TakeResult(part, now, out);
  if (regime_.recomputes()) Recompute(done->references, now, out);
  for (const InFlightReference& reference : done->references) {
    if (table_.retiring() == 0) break;
    Sequence* sequence = table_.Find(reference.slot, reference.sequence);
    if (sequence != nullptr && sequence->retiring) {
      retirement_.ReclaimIfUnreferenced(*sequence, now, out);
    }
  }
  in_flight_.Recycle(*done);
}

void GroupScheduler::Recompute(std::span<const InFlightReference> references, Time now,
                               Outputs& out) {
  for (const InFlightReference& reference : references) {
    Sequence* sequence = table_.Find(reference.slot, reference.sequence);
    if (sequence != nullptr && sequence->MustRecompute()) {
      preemption_.Recompute(*sequence, now, out);
    }
  }
}

void GroupScheduler::TakeResult(const SequenceResult& result, Time now, Outputs& out) {
  Sequence* sequence = table_.Find(result.slot, result.sequence);
  if (sequence == nullptr || sequence->slot != result.slot) return;
  // What a failed step wrote is not used again, also if the request ended before.
  if (result.finish == ShardFinish::kError) {
    sequence->blocks.Invalidate(table_.cache(), sequence->id);
  }
  // A sequence that ended reports nothing more. A preempted one does, and continues after that.
  if (sequence->retiring && !sequence->preempted) return;

  const std::uint32_t last =
      std::min(sequence->request.max_new_tokens, sequence->finish_at.value_or(UINT32_MAX));
  const auto given = static_cast<std::uint32_t>(result.tokens.size());
  const std::uint32_t count = std::min(given, last - sequence->tokens_received);
  ReportTokens(*sequence, result, count, out);

  const bool all_taken = count == given;
  const ShardFinish shard = all_taken ? result.finish : ShardFinish::kNone;
  if (const auto reason = ReasonToFinish(*sequence, shard)) {
    retirement_.Finish(*sequence, *reason, sequence->tokens_received, now, out);
  } else if (shard == ShardFinish::kError) {
    retirement_.Fail(*sequence, FailureKind::kShardError, result.error, now, out);
  }
}

// Collects the logprobs of the prompt, and reports them before the first token.
void GroupScheduler::ReportPrompt(Sequence& sequence, const SequenceResult& result,
                                  std::uint32_t count, Outputs& out) {
  sequence.prompt_logprobs.insert(sequence.prompt_logprobs.end(), result.prompt_logprobs.begin(),
                                  result.prompt_logprobs.end());
  sequence.prompt_alternatives.insert(sequence.prompt_alternatives.end(),
                                      result.prompt_alternatives.begin(),
                                      result.prompt_alternatives.end());
  if (count == 0) return;
  out.AddEvent(sequence.request.request, PromptLogprobs{std::move(sequence.prompt_logprobs),
                                                        std::move(sequence.prompt_alternatives)});
}

void GroupScheduler::ReportTokens(Sequence& sequence, const SequenceResult& result,
                                  std::uint32_t count, Outputs& out) {
  if (sequence.tokens_received == 0 && sequence.request.logprobs.prompt_logprobs) {
    ReportPrompt(sequence, result, count, out);
  }
  if (count == 0) return;
  Event& event = out.events.emplace_back();
  event.request = sequence.request.request;
  auto& tokens = event.what.emplace<Tokens>();  // built in place: this runs for every row
  tokens.first_index = sequence.tokens_received;
  for (std::uint32_t i = 0; i < count; ++i) {
    tokens.tokens.emplace_back(result.tokens[i]);
    sequence.generated.push_back(result.tokens[i].token);
  }
  sequence.tokens_received += count;
  sequence.account->Charge(kOutputWork * count);
  sharing_.Enter(sequence, sequence.last_plan);
}

bool GroupScheduler::Cancel(RequestId request, Time now, Outputs& out) {
  Sequence* sequence = table_.FindRunning(request);
  if (sequence == nullptr) return false;
  retirement_.Finish(*sequence, FinishReason::kCancelled, sequence->tokens_received, now, out);
  retirement_.ReclaimIfUnreferenced(*sequence, now, out);
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
  retirement_.Finish(*sequence, FinishReason::kStopString, token_count, now, out);
  retirement_.ReclaimIfUnreferenced(*sequence, now, out);
  return true;
}

void GroupScheduler::Forget(const ForgetPrefixes& prefixes) {
  table_.cache().Forget(prefixes.tenant, prefixes.made_by);
}

void GroupScheduler::EmitPinChanges(Outputs& out) {
  for (PinChange& change : table_.cache().TakePinChanges()) {
    change.group = id_;
    out.pins.push_back(change);
  }
}

void GroupScheduler::Lose(const GroupLost& lost, Time now, Outputs& out) {
  if (config_.recovery_timeout > Duration(0)) {
    retirement_.RequeueAll(lost.reason, lost.in_order, now, out);
  } else {
    retirement_.FailAll(lost.reason, now, out);
  }
  table_.cache().ForgetAll();
  EmitPinChanges(out);
}

void GroupScheduler::AddTo(Snapshot& sum) const {
  sum.running += table_.running();
  sum.retiring += table_.retiring();
  sum.blocks_free += table_.pool().free();
  sum.blocks_used += table_.pool().used();
  sum.blocks_cached += table_.pool().cached();
  sum.blocks_retiring += table_.pool().retiring();
  sum.blocks_total += table_.pool().total();
  const BlockPool& window = table_.cache().window().pool();
  sum.window_blocks_free += window.free();
  sum.window_blocks_used += window.used();
  sum.window_blocks_cached += window.cached();
  sum.window_blocks_retiring += window.retiring();
  sum.window_blocks_total += window.total();
  sum.plans_in_flight += in_flight_.size();
}

}  // namespace penstock::scheduler
