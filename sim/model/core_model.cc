#include "sim/model/core_model.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace penstock::sim {
namespace {

constexpr std::uint32_t kMostBlocks = 1000;

// The core's next decision defers a request for this reason.
bool Says(const OutputReader& core_outputs, const scheduler::Shortage& shortage,
          std::optional<RequestId> behind) {
  const Decision* const next = core_outputs.NextDecision();
  return next != nullptr && next->kind == DecisionKind::kDeferred &&
         next->short_of == shortage.budget && next->needed == shortage.needed &&
         next->available == shortage.available && next->behind == behind;
}

}  // namespace

using scheduler::Arrival;
using scheduler::Cancel;
using scheduler::FinishAt;
using scheduler::ForgetPrefixes;
using scheduler::GroupLost;
using scheduler::GroupUp;
using scheduler::Input;
using scheduler::Order;
using scheduler::Outputs;
using scheduler::Shortage;
using scheduler::Snapshot;
using scheduler::StepDone;

std::optional<std::string> CoreModel::Check(const Input& input, const Outputs& out,
                                            const Snapshot& state) {
  if (stopped_) return std::nullopt;
  now_ = input.now;
  OutputReader core_outputs(out);
  try {
    std::visit([this, &core_outputs](const auto& what) { On(what, core_outputs); }, input.what);
    if (stopped_) return std::nullopt;
    FailOverdue(core_outputs);
    MakeSteps(core_outputs);
    waiting_.Explain(!groups_.empty(), now_, core_outputs);
    for (auto& [id, group] : groups_) group.ExpectPinChanges(core_outputs);
    core_outputs.ExpectEnd();
    CheckState(state);
    return std::nullopt;
  } catch (const Difference& difference) {
    stopped_ = true;
    return difference.what;
  }
}

// --- Inputs

Decision CoreModel::Say(RequestId request, DecisionKind kind) const {
  Decision decision;
  decision.at = now_;
  decision.request = request;
  decision.kind = kind;
  return decision;
}

void CoreModel::Refuse(RequestId request, const Shortage& why, OutputReader& core_outputs) {
  Decision decision = Say(request, DecisionKind::kRefused);
  decision.short_of = why.budget;
  decision.needed = why.needed;
  decision.available = why.available;
  core_outputs.Expect(decision);
}

void CoreModel::On(const Arrival& arrival, OutputReader& core_outputs) {
  core_outputs.Expect(Say(arrival.request, DecisionKind::kQueued));
  if (draining_) return Refuse(arrival.request, {}, core_outputs);
  if (const auto why = WhyNever(arrival)) return Refuse(arrival.request, *why, core_outputs);
  if (waiting_.full()) {
    const std::uint64_t most = config_.max_waiting_requests;
    return Refuse(arrival.request, {Budget::kQueue, most + 1, most}, core_outputs);
  }
  ModelRequest request;
  request.arrival = arrival;
  request.number = ++arrivals_;
  const std::uint64_t work = WorkOf(request);
  waiting_.Add(std::move(request), work);
}

// The greatest chunk is that of the settings, also where a group has a smaller one.
std::uint64_t CoreModel::WorkOf(const ModelRequest& request) const {
  const Arrival& arrival = request.arrival;
  std::uint32_t output = arrival.predicted_tokens;
  if (output == 0) output = arrival.ranked_tokens;
  const bool longer = arrival.length_given && output > arrival.max_new_tokens;
  if (output == 0 || longer) output = arrival.max_new_tokens;
  const std::uint32_t now = request.received();
  const std::uint32_t left = output > now ? output - now : now;
  std::uint32_t uncached = request.prompt() + now;
  for (const auto& [id, group] : groups_) {
    if (!group.Fits(request)) continue;
    uncached = std::min(uncached, request.prompt() + now - group.CachedTokens(request));
  }
  std::uint32_t chunk = config_.max_step_tokens;
  const std::uint32_t prefill = config_.max_batch_prefill_tokens;
  if (prefill > 0 && prefill < chunk) chunk = prefill;
  std::uint64_t steps = left;
  for (std::uint32_t done = 0; done < uncached; done += chunk) ++steps;
  return steps;
}

void CoreModel::EndWaiting(RequestId request, OutputReader& core_outputs) {
  waiting_.Remove(request);
  core_outputs.Expect(Say(request, DecisionKind::kFinished));
}

void CoreModel::On(const Cancel& cancel, OutputReader& core_outputs) {
  if (waiting_.Find(cancel.request) != nullptr) return EndWaiting(cancel.request, core_outputs);
  for (auto& [id, group] : groups_) {
    if (group.Cancel(cancel.request, now_, core_outputs)) return;
  }
}

void CoreModel::On(const FinishAt& finish, OutputReader& core_outputs) {
  if (const ModelWaiting* waits = waiting_.Find(finish.request)) {
    if (!waits->ran()) return;  // it has no output
    if (finish.token_count <= waits->received()) return EndWaiting(finish.request, core_outputs);
    return waiting_.FinishAt(finish.request, finish.token_count);
  }
  for (auto& [id, group] : groups_) {
    if (group.FinishAt(finish.request, finish.token_count, now_, core_outputs)) return;
  }
}

void CoreModel::On(const StepDone& done, OutputReader& core_outputs) {
  const auto group = groups_.find(done.group);
  if (group == groups_.end() || group->second.epoch() != done.result.epoch) return;
  group->second.OnResult(done.result, now_, core_outputs);
  waiting_.ChargeTokens(core_outputs.out().events);
  Requeue(group->second, core_outputs);
}

void CoreModel::On(const GroupUp& up, OutputReader& core_outputs) {
  const GroupCapacity& capacity = up.capacity;
  stopped_ = stopped_ || capacity.blocks > kMostBlocks;
  Lose({up.group, up.epoch, ""}, core_outputs);
  if (groups_.empty()) waiting_.MarkAll();
  groups_.try_emplace(up.group, config_, up, lengths_);
  placement_.Up(up.group);
  SetDeadlines();
}

void CoreModel::On(const GroupLost& lost, OutputReader& core_outputs) {
  const auto group = groups_.find(lost.group);
  if (group != groups_.end() && group->second.epoch() == lost.epoch) Lose(lost, core_outputs);
}

void CoreModel::On(const ForgetPrefixes& what, OutputReader&) {
  for (auto& [id, group] : groups_) group.Forget(what);
}

void CoreModel::Lose(const GroupLost& lost, OutputReader& core_outputs) {
  const auto group = groups_.find(lost.group);
  if (group == groups_.end()) return;
  GroupLost loss = lost;
  loss.in_order = lost.in_order || draining_;
  group->second.Lose(loss, now_, core_outputs);
  auto lost_group = groups_.extract(group);  // it is no more when its requests come to the queue
  Requeue(lost_group.mapped(), core_outputs);
  placement_.Down(lost.group);
  if (groups_.empty()) waiting_.MarkAll();
  SetDeadlines();
}

void CoreModel::SetDeadlines() {
  const auto continues = [this](const ModelRequest& request) {
    return std::ranges::any_of(groups_,
                               [&request](const auto& each) { return each.second.Fits(request); });
  };
  waiting_.SetDeadlines(continues, now_);
}

void CoreModel::FailOverdue(OutputReader& core_outputs) {
  for (const RequestId request : waiting_.Overdue(now_)) {
    waiting_.Remove(request);
    Refuse(request, {Budget::kGroup, 1, 0}, core_outputs);
  }
}

void CoreModel::Requeue(ModelGroup& group, OutputReader& core_outputs) {
  for (ModelRequest& request : group.TakePreempted()) {
    core_outputs.Expect(Say(request.id(), DecisionKind::kQueued));
    const std::uint64_t work = WorkOf(request);
    waiting_.Add(std::move(request), work);
  }
}

// --- Steps

bool CoreModel::AnyIdle() const {
  return std::ranges::any_of(groups_,
                             [](const auto& each) { return each.second.plans_in_flight() == 0; });
}

// While a request waits and a group is idle, all groups are asked again.
void CoreModel::MakeSteps(OutputReader& core_outputs) {
  doubtful_.reset();
  for (const Reach reach : {Reach::kAll, Reach::kIdleFirst, Reach::kOwn}) {
    if (reach != Reach::kAll && (waiting_.empty() || !AnyIdle())) return;
    for (bool made = true; made;) {
      made = false;
      for (auto& [id, group] : groups_) made = MakeStep(group, reach, core_outputs) || made;
    }
  }
}

bool CoreModel::MakeStep(ModelGroup& group, Reach reach, OutputReader& core_outputs) {
  if (!group.CanPlan()) return false;
  const auto fits = [&group](const ModelRequest& request) { return group.Fits(request); };
  group.BeginStep(waiting_.Overlong(fits), now_, core_outputs);
  Requeue(group, core_outputs);
  if (!TooFewJoin(group, core_outputs)) {
    while (AdmitNext(group, reach, core_outputs)) {
    }
  }
  const bool ends_alone = reach == Reach::kOwn || waiting_.empty();
  const bool made = group.FinishStep(waiting_.all().size(), ends_alone, core_outputs);
  if (made) waiting_.CountStep();
  return made;
}

WaitingModel::Fits CoreModel::FitsOf(const ModelGroup& group) const {
  return [this, &group](const ModelRequest& request) {
    if (group.Fits(request)) return true;
    const bool waits = request.ran() && config_.recovery_timeout > Duration(0);
    return !waits && WhyNever(request.arrival);
  };
}

// TGI's admission rule. A preempted request passed it before.
bool CoreModel::TooFewJoin(ModelGroup& group, OutputReader& core_outputs) {
  const std::uint32_t least = group.LeastNewcomers();
  if (least < 2) return false;
  const auto fits = FitsOf(group);
  const bool known = waiting_.FrontIsKnown(fits);
  const ModelWaiting* front = known ? waiting_.Front(fits) : NamedByCore(group, core_outputs);
  if (known && (front == nullptr || front->ran())) return false;
  std::vector<const ModelRequest*> next;
  for (const ModelWaiting* each = front; each != nullptr; each = waiting_.After(*each)) {
    next.push_back(each);
  }
  const std::uint32_t joining = group.Together(next, least);
  if (joining >= least) return false;
  const Shortage shortage{Budget::kJoinSize, least, joining};
  if (!known && (front == nullptr || !Says(core_outputs, shortage, group.OldestRunning())))
    return true;
  waiting_.Defer(front->id(), shortage, group.OldestRunning(), now_, core_outputs);
  return true;
}

// The front, or with a static batch of equal lengths a later request that may join it.
const ModelWaiting* CoreModel::Candidate(const ModelGroup& group) const {
  const ModelWaiting* const front = waiting_.Front(FitsOf(group));
  if (!group.TakesEquals()) return front;
  const ModelWaiting* request = front;
  while (request != nullptr && (request->fails_at || group.WhyNotNow(*request))) {
    request = waiting_.After(*request);
  }
  return request != nullptr ? request : front;
}

// Longest-prefix: the request that the core's next decision is about.
const ModelWaiting* CoreModel::NamedByCore(const ModelGroup& group,
                                           const OutputReader& core_outputs) const {
  const Decision* const next = core_outputs.NextDecision();
  if (next == nullptr || next->short_of == Budget::kOrder) return nullptr;
  // A refusal names no group. It may come after the next plan, which then counts the request.
  const scheduler::StepInfo* const plan = core_outputs.NextStep();
  const bool later = plan != nullptr && plan->waiting >= waiting_.all().size();
  if (next->kind == DecisionKind::kRefused && later) return nullptr;
  if (next->kind == DecisionKind::kAdmitted) {
    // The step that admits it is the core's next plan: another group may make one before.
    const bool now = plan != nullptr && plan->group == group.id() && plan->step == group.step();
    if (!now || next->group != plan->group || next->step != plan->step) return nullptr;
  } else if (next->kind != DecisionKind::kDeferred && next->kind != DecisionKind::kRefused) {
    return nullptr;
  }
  const ModelWaiting* const named = waiting_.Find(next->request);
  const auto fits = FitsOf(group);
  if (named == nullptr || !fits(*named)) return nullptr;
  const ModelWaiting* const first = waiting_.Earliest(fits);
  const bool in_turn = first != nullptr && first->arrival.account == named->arrival.account;
  return in_turn ? named : nullptr;
}

bool CoreModel::SomeoneWaits(const ModelGroup& group, Reach reach) const {
  const auto fits = FitsOf(group);
  const ModelWaiting* const first = waiting_.Earliest(fits);
  if (first == nullptr) return true;
  return std::ranges::any_of(waiting_.all(), [&](const ModelWaiting& each) {
    if (!fits(each) || each.arrival.account != first->arrival.account) return false;
    const Fate fate = FateOf(each, group, reach);
    if (fate.kind == Fate::Kind::kElsewhere) return true;
    return fate.kind == Fate::Kind::kDeferred &&
           WaitingModel::Recorded(each, fate.shortage, fate.behind);
  });
}

// Whether this group may have emitted the doubtful deferral. Takes the deferral.
bool CoreModel::TakeDoubtful(const ModelGroup& group, Reach reach) {
  if (!doubtful_) return false;
  const Deferral deferral = *std::exchange(doubtful_, std::nullopt);
  const ModelWaiting* const request = waiting_.Find(deferral.request);
  if (request == nullptr || !FitsOf(group)(*request)) return false;
  const Fate fate = FateOf(*request, group, reach);
  return fate.kind == Fate::Kind::kDeferred && fate.shortage == deferral.shortage &&
         fate.behind == deferral.behind;
}

// Without a match the first arrival is next.
void CoreModel::CheckLongestPrefix(const ModelGroup& group, const ModelWaiting& chosen) const {
  if (group.CachedTokens(chosen) > 0 || waiting_.Earliest(FitsOf(group)) == &chosen) return;
  throw Difference{"request " + std::to_string(chosen.id().value()) +
                   " has no prefix in the cache and is not the first arrival"};
}

bool CoreModel::AdmitNext(ModelGroup& group, Reach reach, OutputReader& core_outputs) {
  if (waiting_.FrontIsKnown(FitsOf(group))) {
    const ModelWaiting* const next = Candidate(group);
    return next != nullptr && Settle(group, next->id(), FateOf(*next, group, reach), core_outputs);
  }
  const ModelWaiting* const named = NamedByCore(group, core_outputs);
  if (named != nullptr) {
    const Fate fate = FateOf(*named, group, reach);
    const DecisionKind kind = core_outputs.NextDecision()->kind;
    const bool admitted = kind == DecisionKind::kAdmitted;
    if (admitted) CheckLongestPrefix(group, *named);
    const bool deferred =
        fate.kind == Fate::Kind::kDeferred && Says(core_outputs, fate.shortage, fate.behind);
    if (deferred && SomeoneWaits(group, reach)) {
      doubtful_ = Deferral{named->id(), fate.shortage, fate.behind};
    }
    if (admitted || deferred || kind == DecisionKind::kRefused) {
      return Settle(group, named->id(), fate, core_outputs);
    }
  }
  if (SomeoneWaits(group, reach) || TakeDoubtful(group, reach)) return false;
  throw Difference{"group " + std::to_string(group.id().value()) + " could admit any request"};
}

// Returns false if no further request is asked.
bool CoreModel::Settle(ModelGroup& group, RequestId request, const Fate& fate,
                       OutputReader& core_outputs) {
  switch (fate.kind) {
    case Fate::Kind::kElsewhere:
      return false;
    case Fate::Kind::kDeferred:
      waiting_.Defer(request, fate.shortage, fate.behind, now_, core_outputs);
      return false;
    case Fate::Kind::kRefused:
      waiting_.Remove(request);
      Refuse(request, fate.shortage, core_outputs);
      return true;
    case Fate::Kind::kAdmitted:
      break;
  }
  placement_.Admitted(group.id(), fate.uncached);
  group.Admit(waiting_.Admit(request, fate.uncached), SequenceId(++sequences_), now_, core_outputs);
  return true;
}

std::vector<GroupOffer> CoreModel::Offers(const ModelWaiting& request, const ModelGroup& group,
                                          Reach reach) const {
  std::vector<GroupOffer> offers;
  for (const auto& [id, each] : groups_) {
    if (!each.Fits(request)) continue;
    GroupOffer offer;
    offer.group = id;
    offer.shortage = each.WhyNotNow(request);
    offer.running = each.running();
    offer.plans_in_flight = each.plans_in_flight();
    offer.uncached = request.prompt() + request.received() - each.CachedTokens(request);
    const bool own = reach == Reach::kOwn && &each == &group && offer.plans_in_flight == 0;
    if (own && !offer.shortage) return {offer};
    offers.push_back(offer);
  }
  return offers;
}

CoreModel::Fate CoreModel::FateOf(const ModelWaiting& request, const ModelGroup& group,
                                  Reach reach) const {
  Fate fate;
  if (const auto why = WhyNever(request.arrival)) {
    fate.kind = Fate::Kind::kRefused;
    fate.shortage = *why;
    return fate;
  }
  const GroupOffer best = placement_.Best(Offers(request, group, reach), reach != Reach::kAll);
  fate.uncached = best.uncached;
  if (best.shortage) {
    fate.shortage = *best.shortage;
    fate.behind = groups_.at(best.group).OldestRunning();
  } else if (best.group != group.id()) {
    fate.kind = Fate::Kind::kElsewhere;
  } else if (const auto prefix = group.AwaitedPrefix(request)) {
    fate.shortage = {Budget::kPrefix, prefix->shared, prefix->present};
    fate.behind = prefix->owner;
  } else if (const auto shortage = group.WhyNotInStep(request)) {
    fate.shortage = *shortage;
    fate.behind = group.OldestRunning();
  } else {
    fate.kind = Fate::Kind::kAdmitted;
  }
  return fate;
}

std::optional<Shortage> CoreModel::WhyNever(const Arrival& arrival) const {
  std::optional<Shortage> why;
  for (const auto& [id, group] : groups_) {
    why = group.WhyNever(arrival);
    if (!why) return std::nullopt;
  }
  return why;
}

void CoreModel::CheckState(const Snapshot& state) const {
  waiting_.CheckGauges(state);
  Snapshot own;
  for (const auto& [id, group] : groups_) group.AddTo(own);
  ExpectEqual("requests running", own.running, state.running);
  ExpectEqual("sequences retiring", own.retiring, state.retiring);
  ExpectEqual("blocks free", own.blocks_free, state.blocks_free);
  ExpectEqual("blocks used", own.blocks_used, state.blocks_used);
  ExpectEqual("blocks cached", own.blocks_cached, state.blocks_cached);
  ExpectEqual("blocks retiring", own.blocks_retiring, state.blocks_retiring);
  ExpectEqual("blocks", own.blocks_total, state.blocks_total);
  ExpectEqual("window blocks free", own.window_blocks_free, state.window_blocks_free);
  ExpectEqual("window blocks used", own.window_blocks_used, state.window_blocks_used);
  ExpectEqual("window blocks cached", own.window_blocks_cached, state.window_blocks_cached);
  ExpectEqual("window blocks retiring", own.window_blocks_retiring, state.window_blocks_retiring);
  ExpectEqual("window blocks", own.window_blocks_total, state.window_blocks_total);
  ExpectEqual("plans in flight", own.plans_in_flight, state.plans_in_flight);
}

}  // namespace penstock::sim
