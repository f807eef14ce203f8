#include "scheduler/scheduler.h"

#include <map>
#include <utility>
#include <vector>

#include "scheduler/check.h"
#include "scheduler/group_scheduler.h"
#include "scheduler/placement.h"
#include "scheduler/request_queue.h"

namespace penstock::scheduler {

class Scheduler::Impl {
 public:
  explicit Impl(Config config) : config_(config), queue_(config.max_waiting_requests) {
    PENSTOCK_CHECK(!WhyInvalid(config), "the configuration was validated");
  }

  void Apply(const Input& input, Outputs& out) {
    PENSTOCK_CHECK(input.now >= now_, "time does not run backwards");
    now_ = input.now;
    std::visit([this, &out](const auto& what) { On(what, out); }, input.what);
    Advance(out);
    ExplainArrival(input, out);
  }

  Snapshot Inspect() const {
    Snapshot sum;
    sum.waiting = queue_.size();
    for (const auto& [id, group] : groups_) group.AddTo(sum);
    return sum;
  }

 private:
  void On(const Arrival& arrival, Outputs& out) {
    Decide(arrival.request, DecisionKind::kQueued, out);
    if (draining_) {
      return Refuse(arrival.request, FailureKind::kDraining, {{}, "The server is shutting down"},
                    out);
    }
    if (const auto why = WhyNeverFits(arrival)) {
      return Refuse(arrival.request, FailureKind::kTooLarge, *why, out);
    }
    if (queue_.full()) {
      const std::uint64_t limit = queue_.capacity();
      const std::string message = "The queue is full: `max-waiting-requests` is " +
                                  std::to_string(limit) + ". Try again later";
      return Refuse(arrival.request, FailureKind::kQueueFull,
                    {{Budget::kQueue, limit + 1, limit}, message}, out);
    }
    queue_.Push(arrival);
  }

  void On(const Cancel& cancel, Outputs& out) {
    if (queue_.Remove(cancel.request)) {
      out.AddEvent(cancel.request, Finished{FinishReason::kCancelled, 0});
      Decide(cancel.request, DecisionKind::kFinished, out);
      return;
    }
    for (auto& [id, group] : groups_) {
      if (group.Cancel(cancel.request, now_, out)) return;
    }
  }

  void On(const FinishAt& finish, Outputs& out) {
    for (auto& [id, group] : groups_) {
      if (group.FinishAt(finish.request, finish.token_count, now_, out)) return;
    }
  }

  void On(const StepDone& done, Outputs& out) {
    const auto it = groups_.find(done.group);
    if (it == groups_.end() || it->second.epoch() != done.result.epoch) return;
    it->second.OnResult(done.result, now_, out);
  }

  void On(const GroupUp& up, Outputs& out) {
    Lose(up.group, "the replica group was formed anew", out);
    groups_.try_emplace(up.group, config_, up);
  }

  void On(const GroupLost& lost, Outputs& out) {
    const auto it = groups_.find(lost.group);
    if (it == groups_.end() || it->second.epoch() != lost.epoch) return;
    Lose(lost.group, lost.reason, out);
  }

  void On(const Drain&, Outputs&) { draining_ = true; }
  // Reserved: plans hold no asynchronous block operation yet, and no policy sets wake_at.
  void On(const TransferDone&, Outputs&) {}
  void On(const Tick&, Outputs&) {}

  void Lose(GroupId id, const std::string& reason, Outputs& out) {
    const auto it = groups_.find(id);
    if (it == groups_.end()) return;
    it->second.Lose(reason, now_, out);
    groups_.erase(it);
  }

  // Makes every plan that can be made (guarantee G4).
  void Advance(Outputs& out) {
    bool progress = true;
    while (progress) {
      progress = false;
      for (auto& [id, group] : groups_) progress = MakeStep(group, out) || progress;
    }
  }

  bool MakeStep(GroupScheduler& group, Outputs& out) {
    if (!group.CanPlan()) return false;
    group.BeginStep(now_, out);
    while (!queue_.empty() && AdmitFront(group, out)) {
    }
    return group.FinishStep(queue_.size(), out);
  }

  // Admits or refuses the front of the queue; false when it must go on waiting.
  bool AdmitFront(GroupScheduler& group, Outputs& out) {
    WaitingRequest& front = queue_.Front();
    if (const auto why = WhyNeverFits(front.arrival)) {
      const RequestId request = queue_.Pop().request;
      Refuse(request, FailureKind::kTooLarge, *why, out);
      return true;
    }
    const GroupOffer best = *ChooseGroup(OffersFor(front.arrival));
    if (best.shortage) return Defer(front, *best.shortage, groups_.at(best.group), out);
    if (best.group != group.id()) return false;  // at the next step of a less loaded group
    if (const auto shortage = group.CheckStep(front.arrival)) {
      return Defer(front, *shortage, group, out);
    }
    group.Admit(queue_.Pop(), SequenceId(++last_sequence_), now_, out);
    return true;
  }

  std::vector<GroupOffer> OffersFor(const Arrival& arrival) const {
    std::vector<GroupOffer> offers;
    for (const auto& [id, group] : groups_) {
      if (group.WhyNeverFits(arrival)) continue;
      offers.push_back({id, group.running(), group.Check(arrival)});
    }
    return offers;
  }

  // Why no group that is up could ever run it; nothing when one can, or when none is up (then it is
  // not known yet).
  std::optional<Refusal> WhyNeverFits(const Arrival& arrival) const {
    std::optional<Refusal> why;
    for (const auto& [id, group] : groups_) {
      why = group.WhyNeverFits(arrival);
      if (!why) return std::nullopt;
    }
    return why;
  }

  // Always false: the request goes on waiting. A reason is recorded when it changes.
  bool Defer(WaitingRequest& waiting, const Shortage& shortage, const GroupScheduler& group,
             Outputs& out) {
    if (waiting.deferred_by == shortage.budget) return false;
    waiting.deferred_by = shortage.budget;
    Decision& decision = Decide(waiting.arrival.request, DecisionKind::kDeferred, out);
    decision.short_of = shortage.budget;
    decision.needed = shortage.needed;
    decision.available = shortage.available;
    decision.behind = group.OldestRunning();
    return false;
  }

  // A newcomer that stays in the queue learns why: no group, or somebody before it.
  void ExplainArrival(const Input& input, Outputs& out) {
    const auto* arrival = std::get_if<Arrival>(&input.what);
    if (arrival == nullptr || queue_.empty()) return;
    WaitingRequest& last = queue_.Back();
    if (last.arrival.request != arrival->request || last.deferred_by != Budget::kNone) return;
    const RequestId front = queue_.Front().arrival.request;
    if (!groups_.empty() && front == arrival->request) return;  // waits for a result only
    last.deferred_by = groups_.empty() ? Budget::kGroup : Budget::kOrder;
    Decision& decision = Decide(arrival->request, DecisionKind::kDeferred, out);
    decision.short_of = last.deferred_by;
    decision.needed = 1;
    if (last.deferred_by == Budget::kOrder) decision.behind = front;
  }

  Decision& Decide(RequestId request, DecisionKind kind, Outputs& out) {
    Decision decision;
    decision.at = now_;
    decision.request = request;
    decision.kind = kind;
    return out.decisions.emplace_back(decision);
  }

  void Refuse(RequestId request, FailureKind kind, const Refusal& why, Outputs& out) {
    Decision& decision = Decide(request, DecisionKind::kRefused, out);
    decision.short_of = why.shortage.budget;
    decision.needed = why.shortage.needed;
    decision.available = why.shortage.available;
    out.AddEvent(request, Failed{kind, why.message});
  }

  const Config config_;
  Time now_ = Time::min();
  RequestQueue queue_;
  std::map<GroupId, GroupScheduler> groups_;  // those that are up
  std::uint64_t last_sequence_ = 0;
  bool draining_ = false;
};

Scheduler::Scheduler(Config config) : impl_(std::make_unique<Impl>(config)) {}
Scheduler::~Scheduler() = default;

void Scheduler::Apply(const Input& input, Outputs& out) { impl_->Apply(input, out); }

Snapshot Scheduler::Inspect() const { return impl_->Inspect(); }

}  // namespace penstock::scheduler
