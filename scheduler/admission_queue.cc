#include "scheduler/admission_queue.h"

#include <utility>

#include "scheduler/decide.h"

namespace penstock::scheduler {

void AdmissionQueue::Push(const Arrival& arrival) { Enter(requests_.Push(arrival)); }

void AdmissionQueue::Requeue(std::vector<Work> preempted, Time now, Outputs& out) {
  for (Work& work : preempted) {
    Decide(work.request.request, DecisionKind::kQueued, now, out);
    const WaitingRequest& waiting = work.yielded ? requests_.PushYielded(std::move(work))
                                                 : requests_.PushRestart(std::move(work));
    Enter(waiting);
  }
}

void AdmissionQueue::Enter(const WaitingRequest& request) {
  Count(Budget::kNone, 1);
  changed_.push_back(request.request.request);
  if (const WaitingRequest* after = requests_.After(request)) {
    changed_.push_back(after->request.request);
  }
}

Work AdmissionQueue::Admit(WaitingRequest& request) {
  Leave(request);
  return requests_.Admit(request);
}

Work AdmissionQueue::Remove(WaitingRequest& request) {
  Leave(request);
  return requests_.Remove(request);
}

void AdmissionQueue::Leave(const WaitingRequest& request) {
  Count(request.deferred.budget, -1);
  if (const WaitingRequest* after = requests_.After(request)) {
    changed_.push_back(after->request.request);
  }
}

void AdmissionQueue::Count(Budget budget, int change) {
  reasons_[static_cast<std::size_t>(budget)] += static_cast<std::uint32_t>(change);
}

// What a step has left of its token budget differs in every step, so only a new budget counts as a
// new reason there.
void AdmissionQueue::Defer(WaitingRequest& request, const Shortage& shortage,
                           std::optional<RequestId> waits_for, Time now, Outputs& out) {
  const bool of_a_step =
      shortage.budget == Budget::kStepTokens || shortage.budget == Budget::kPrefillTokens;
  const bool same_budget = request.deferred.budget == shortage.budget;
  const bool same = request.deferred == shortage && request.waits_for == waits_for;
  if (same_budget && (of_a_step || same)) return;
  Count(request.deferred.budget, -1);
  Count(shortage.budget, 1);
  request.deferred = shortage;
  request.waits_for = waits_for;
  Decision& decision = Decide(request.request.request, DecisionKind::kDeferred, now, out);
  decision.short_of = shortage.budget;
  decision.needed = shortage.needed;
  decision.available = shortage.available;
  decision.behind = waits_for;
}

void AdmissionQueue::MarkAllChanged() {
  for (const WaitingRequest* each : requests_.All()) changed_.push_back(each->request.request);
}

void AdmissionQueue::ExplainChanged(std::optional<GroupId> first_group, Time now, Outputs& out) {
  if (changed_.empty()) return;
  // The first request of a tenant waits for the front, which may have changed.
  requests_.AddFirsts(changed_);
  WaitingRequest* const front = first_group ? requests_.Front(*first_group) : nullptr;
  for (const RequestId request : changed_) {
    WaitingRequest* waiting = requests_.Find(request);
    if (waiting == nullptr) continue;
    if (front == nullptr) {
      Defer(*waiting, {Budget::kGroup, 1, 0}, {}, now, out);
    } else if (waiting == front) {
      ForgetOrder(*waiting);
    } else {
      const WaitingRequest* before = requests_.Before(*waiting, *front);
      const auto name = before != nullptr ? std::optional(before->request.request) : std::nullopt;
      Defer(*waiting, {Budget::kOrder, 1, 0}, name, now, out);
    }
  }
  changed_.clear();
}

// The front waits for no other request, but for what the last plan was short of, or for a result.
void AdmissionQueue::ForgetOrder(WaitingRequest& front) {
  if (front.deferred.budget != Budget::kOrder || !front.waits_for) return;
  Count(Budget::kOrder, -1);
  Count(Budget::kNone, 1);
  front.deferred = {};
  front.waits_for.reset();
}

}  // namespace penstock::scheduler
