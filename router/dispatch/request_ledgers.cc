#include "router/dispatch/request_ledgers.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <variant>

#include "router/metrics/metrics.h"

namespace penstock::router {
namespace {

constexpr std::size_t kMostWaitingShown = 32;  // of a report

}  // namespace

void RequestLedgers::Begin(RequestId id, const GenerationRequest& request, Time now) {
  const Time arrived = request.arrived.value_or(now);
  const auto entry = std::make_shared<Entry>(
      Entry{id, request.tenant, request.client_id, TimeLedger(arrived, TimeKind::kUpload)});
  entry->ledger.Enter(TimeKind::kParse, request.read.value_or(arrived));
  entry->ledger.Enter(request.beams ? TimeKind::kSearch : TimeKind::kTextQueue, now);
  const std::lock_guard lock(mutex_);
  entries_[id] = entry;
}

RequestLedgers::Entry* RequestLedgers::At(RequestId id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.get();
}

void RequestLedgers::Enter(RequestId id, TimeKind kind, Time at) {
  const std::lock_guard lock(mutex_);
  if (Entry* entry = At(id)) entry->ledger.Enter(kind, at);
}

void RequestLedgers::End(RequestId id, Time at) {
  const std::lock_guard lock(mutex_);
  Entry* entry = At(id);
  if (entry == nullptr) return;
  entry->ledger.Enter(TimeKind::kSocket, at);
  Retain(*entry);
}

void RequestLedgers::Close(RequestId id, Time at) {
  const std::lock_guard lock(mutex_);
  Entry* entry = At(id);
  if (entry == nullptr) return;
  CloseOne(*entry, at);
  Retain(*entry);
}

void RequestLedgers::CloseOne(Entry& entry, Time at) {
  if (entry.ledger.closed()) return;
  entry.ledger.Close(at);
  metrics_.requests().TimeSpent(entry.ledger.totals());
  hour_.Add(entry.ledger.totals(), at);
}

// A request without a client connection, such as a health probe, is never closed. It ends here.
void RequestLedgers::Retain(Entry& entry) {
  if (std::exchange(entry.ended, true)) return;
  ended_.push_back(entry.id);
  if (ended_.size() <= max_ended_) return;
  if (Entry* oldest = At(ended_.front())) CloseOne(*oldest, oldest->ledger.since());
  entries_.erase(ended_.front());
  ended_.pop_front();
}

void RequestLedgers::Take(const scheduler::Input& input, const scheduler::Outputs& outputs) {
  const auto* done = std::get_if<scheduler::StepDone>(&input.what);
  if (done == nullptr && outputs.decisions.empty() && outputs.plans.empty()) return;
  const std::lock_guard lock(mutex_);
  if (done != nullptr) TakeStep(*done, input.now);
  for (const Decision& decision : outputs.decisions) TakeDecision(decision);
  for (const scheduler::PlanOut& out : outputs.plans) TakePlan(out);
}

void RequestLedgers::TakeDecision(const Decision& decision) {
  Entry* entry = At(decision.request);
  if (entry == nullptr) return;
  TimeLedger& ledger = entry->ledger;
  const bool preempted = ledger.kind() == TimeKind::kPreempted;
  switch (decision.kind) {
    case DecisionKind::kQueued:
      if (!preempted) ledger.Enter(QueueFor(Budget::kNone), decision.at);
      break;
    case DecisionKind::kDeferred:
      ledger.Enter(preempted ? TimeKind::kPreempted : QueueFor(decision.short_of), decision.at,
                   decision.behind);
      break;
    case DecisionKind::kAdmitted:
      ledger.Admit(decision.at);
      break;
    case DecisionKind::kPreempted:
    case DecisionKind::kLost:
      ledger.Preempt(decision.at);
      break;
    case DecisionKind::kRefused:
    case DecisionKind::kFinished:
      ledger.Enter(TimeKind::kText, decision.at);
      Retain(*entry);
      break;
    case DecisionKind::kChunked:
    case DecisionKind::kSplit:
    case DecisionKind::kRetired:
      break;
  }
}

void RequestLedgers::TakePlan(const scheduler::PlanOut& out) {
  if (out.plan.starts.empty()) return;
  std::vector<Kept>& slots = slots_[out.group];
  for (std::size_t i = 0; i < out.plan.starts.size(); ++i) {
    const std::size_t slot = out.plan.starts[i].slot.value();
    if (slots.size() <= slot) slots.resize(slot + 1);
    const auto found = entries_.find(out.requests[i]);
    slots[slot] = found == entries_.end() ? nullptr : found->second;
  }
}

void RequestLedgers::TakeStep(const scheduler::StepDone& done, Time now) {
  const std::vector<Kept>& slots = slots_[done.group];
  const auto at = [&slots](const SequenceResult& result) -> Entry* {
    const std::size_t slot = result.slot.value();
    return slot < slots.size() ? slots[slot].get() : nullptr;
  };
  // One more than is shown, as the request itself is among them.
  std::array<RequestId, TimeLedger::kMostBeside + 1> first{};
  std::array<RequestId, 2> prompts{};
  std::size_t named = 0;
  std::size_t prompt_count = 0;
  for (const SequenceResult& result : done.result.sequences) {
    const Entry* entry = at(result);
    if (entry == nullptr) continue;
    if (named < first.size()) first[named++] = entry->id;
    if (prompt_count < prompts.size() && entry->ledger.computes_prompt()) {
      prompts[prompt_count++] = entry->id;
    }
  }
  const StepTimings& timings = done.result.timings;
  TimeLedger::Step step{
      .at = now,
      .queued = timings.queued,
      .computed = timings.forward + timings.sample,
      .other_count = static_cast<std::uint32_t>(done.result.sequences.size()) - 1};
  std::array<RequestId, TimeLedger::kMostBeside> others{};
  for (const SequenceResult& result : done.result.sequences) {
    Entry* entry = at(result);
    if (entry == nullptr) continue;
    step.gave_token = !result.tokens.empty();
    step.prompt_of.reset();
    for (const RequestId prompt : std::span(prompts).first(prompt_count)) {
      if (prompt != entry->id) step.prompt_of = prompt;
    }
    if (entry->ledger.computes_prompt()) {
      const auto end = std::copy_if(first.begin(), first.begin() + std::min(named, others.size()),
                                    others.begin(), [&](RequestId id) { return id != entry->id; });
      step.others = std::span(others.begin(), end);
    }
    entry->ledger.Take(step);
  }
}

std::optional<LedgerView> RequestLedgers::View(RequestId id, Time now) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return std::nullopt;
  return found->second->ledger.View(now);
}

// While somebody watches, ten times a second at most.
void RequestLedgers::Describe(StepReport& report, Time now) const {
  const std::lock_guard lock(mutex_);
  report.last_hour = hour_.Sum(now);
  for (const auto& [id, entry] : entries_) {
    if (entry->ended || !entry->ledger.waits()) continue;
    report.queue.push_back({id,
                            entry->tenant,
                            entry->client_id,
                            entry->ledger.kind(),
                            entry->ledger.behind(),
                            {},
                            entry->ledger.since()});
  }
  std::ranges::sort(report.queue, {}, &WaitingView::request);
  if (report.queue.size() > kMostWaitingShown) {
    report.queue_left_out = static_cast<std::uint32_t>(report.queue.size() - kMostWaitingShown);
    report.queue.resize(kMostWaitingShown);
  }
  for (WaitingView& waiting : report.queue) {
    if (!waiting.behind) continue;
    const auto before = entries_.find(*waiting.behind);
    if (before != entries_.end()) waiting.behind_tenant = before->second->tenant;
  }
}

}  // namespace penstock::router
