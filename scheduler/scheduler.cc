#include "scheduler/scheduler.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/admission/output_lengths.h"
#include "scheduler/check.h"
#include "scheduler/group_scheduler.h"
#include "scheduler/order/order_policy.h"
#include "scheduler/order/prefix_order.h"
#include "scheduler/order/request_queue.h"
#include "scheduler/placement.h"

namespace penstock::scheduler {

class Scheduler::Impl {
 public:
  explicit Impl(Config config)
      : config_(config),
        queue_(config.max_waiting_requests, MakeOrder(), MaxOvertakes(config)),
        placement_(config.placement, config.placement_load_permille) {
    PENSTOCK_CHECK(!WhyInvalid(config), "the configuration was validated");
  }

  void Apply(const Input& input, Outputs& out) {
    PENSTOCK_CHECK(input.now >= now_, "time does not run backwards");
    now_ = input.now;
    std::visit([this, &out](const auto& what) { On(what, out); }, input.what);
    ++changes_;
    Advance(out);
    ExplainPlaces(out);
    for (auto& [id, group] : groups_) group.TellPins(out);
  }

  Snapshot InspectGroup(GroupId id) const {
    Snapshot own;
    const auto it = groups_.find(id);
    if (it != groups_.end()) it->second.AddTo(own);
    return own;
  }

  Snapshot Inspect() const {
    Snapshot sum;
    sum.waiting = queue_.size();
    sum.waiting_for = reasons_;
    for (const auto& [id, group] : groups_) group.AddTo(sum);
    return sum;
  }

 private:
  // Which groups a request is offered to when a group makes a step: all alike; all, but those with
  // nothing to do first; or the one that makes the step alone, if it has nothing to do. The last is
  // for an order that is each group's own (longest-prefix): of two idle groups each may name a
  // request that is better off on the other.
  enum class Reach { kAll, kIdleFirst, kOwn };

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
    WaitingRequest& waiting = queue_.Push(arrival);
    CountReason(Budget::kNone, 1);
    moved_.push_back(arrival.request);
    if (const WaitingRequest* behind = queue_.Behind(waiting)) {
      moved_.push_back(behind->request.request);
    }
  }

  void On(const Cancel& cancel, Outputs& out) {
    if (WaitingRequest* waiting = queue_.Find(cancel.request)) {
      return FinishWaiting(*waiting, FinishReason::kCancelled,
                           static_cast<std::uint32_t>(waiting->generated.size()), out);
    }
    for (auto& [id, group] : groups_) {
      if (group.Cancel(cancel.request, now_, out)) return;
    }
  }

  void On(const FinishAt& finish, Outputs& out) {
    if (WaitingRequest* waiting = queue_.Find(finish.request))
      return FinishRestart(*waiting, finish, out);
    for (auto& [id, group] : groups_) {
      if (group.FinishAt(finish.request, finish.token_count, now_, out)) return;
    }
  }

  void On(const StepDone& done, Outputs& out) {
    const auto it = groups_.find(done.group);
    if (it == groups_.end()) return;
    if (it->second.epoch() != done.result.epoch) return;
    it->second.OnResult(done.result, now_, out);
    TakePreempted(it->second, out);
  }

  void On(const GroupUp& up, Outputs& out) {
    Lose(up.group, "the replica group was formed anew", out);
    if (groups_.empty()) NoteAll();
    groups_.try_emplace(up.group, config_, up, lengths_);
    placement_.Up(up.group);
  }

  void On(const GroupLost& lost, Outputs& out) {
    const auto it = groups_.find(lost.group);
    if (it == groups_.end() || it->second.epoch() != lost.epoch) return;
    Lose(lost.group, lost.reason, out);
  }

  void On(const ForgetPrefixes& what, Outputs&) {
    for (auto& [id, group] : groups_) group.Forget(what);
  }

  void On(const Drain&, Outputs&) { draining_ = true; }

  // A stop string of a request that was preempted meanwhile.
  void FinishRestart(WaitingRequest& waiting, const FinishAt& finish, Outputs& out) {
    if (!waiting.restart()) return;  // it has said nothing yet
    if (finish.token_count > waiting.generated.size()) {
      waiting.finish_at = std::min(finish.token_count, waiting.finish_at.value_or(UINT32_MAX));
      return;
    }
    FinishWaiting(waiting, FinishReason::kStopString, finish.token_count, out);
  }

  void FinishWaiting(WaitingRequest& waiting, FinishReason reason, std::uint32_t tokens,
                     Outputs& out) {
    NoteLeaving(waiting);
    const RequestId request = queue_.Remove(waiting).request.request;
    out.AddEvent(request, Finished{reason, tokens});
    Decide(request, DecisionKind::kFinished, out);
  }
  // Reserved: plans hold no asynchronous block operation yet, and no policy sets wake_at.
  void On(const TransferDone&, Outputs&) {}
  void On(const Tick&, Outputs&) {}

  void Lose(GroupId id, const std::string& reason, Outputs& out) {
    const auto it = groups_.find(id);
    if (it == groups_.end()) return;
    it->second.Lose(reason, now_, out);
    TakePreempted(it->second, out);
    groups_.erase(it);
    placement_.Down(id);
    if (groups_.empty()) NoteAll();
  }

  // The first group is up, or the last one gone: everybody waits for something else.
  void NoteAll() {
    for (const WaitingRequest* each : queue_.All()) moved_.push_back(each->request.request);
  }

  void TakePreempted(GroupScheduler& group, Outputs& out) {
    for (Work& work : group.TakePreempted()) {
      const WaitingRequest& waiting = queue_.PushRestart(std::move(work));
      Decide(waiting.request.request, DecisionKind::kQueued, out);
      moved_.push_back(waiting.request.request);
      if (const WaitingRequest* behind = queue_.Behind(waiting)) {
        moved_.push_back(behind->request.request);
      }
      CountReason(Budget::kNone, 1);
    }
  }

  // Makes every plan that can be made (guarantee G4). A request that would rather go to a group
  // that is busy goes to an idle one that has room.
  void Advance(Outputs& out) {
    for (const Reach reach : {Reach::kAll, Reach::kIdleFirst, Reach::kOwn}) {
      if (reach != Reach::kAll && !SomebodyIdles()) break;
      reach_ = reach;
      ++changes_;
      MakeSteps(out);
    }
  }

  // A group has nothing to do and somebody waits.
  bool SomebodyIdles() const {
    return !queue_.empty() && std::ranges::any_of(groups_, [](const auto& entry) {
      return entry.second.plans_in_flight() == 0;
    });
  }

  void MakeSteps(Outputs& out) {
    bool progress = true;
    while (progress) {
      progress = false;
      for (auto& [id, group] : groups_) progress = MakeStep(group, out) || progress;
    }
  }

  bool MakeStep(GroupScheduler& group, Outputs& out) {
    if (!group.CanPlan()) return false;
    if (group.running() > 0) ++changes_;  // its decodes take room
    group.BeginStep(now_, out);
    TakePreempted(group, out);
    if (!TooFewToJoin(group, out)) {
      while (AdmitFront(group, out)) {
      }
    }
    // A plan that only tells ends must not make a group busy that might yet get work.
    const bool ends_alone = reach_ == Reach::kOwn || queue_.empty();
    const bool made = group.FinishStep(queue_.size(), ends_alone, out);
    if (made) ++changes_;
    return made;
  }

  // TGI's joining rule (join_gate.h). A preempted request has been let in before.
  bool TooFewToJoin(const GroupScheduler& group, Outputs& out) {
    const std::uint32_t least = group.LeastToJoin();
    WaitingRequest* const front = queue_.Front(group.id());
    if (least < 2 || front == nullptr || front->restart()) return false;
    GroupScheduler::Trial trial = group.BeginTrial();
    std::uint32_t together = 0;
    for (const WaitingRequest* next = front; next != nullptr && together < least;
         next = queue_.Behind(*next)) {
      if (!group.Join(trial, *next)) break;
      ++together;
    }
    if (together >= least) return false;
    Explain(*front, {Budget::kJoinSize, least, together}, group.OldestRunning(), out);
    return true;
  }

  // Admits or refuses the front of the queue; false when it must go on waiting.
  bool AdmitFront(GroupScheduler& group, Outputs& out) {
    WaitingRequest* front = Candidate(group);
    if (front == nullptr) return false;
    if (const auto why = WhyNeverFits(front->request)) {
      NoteLeaving(*front);
      ++changes_;
      const RequestId request = queue_.Remove(*front).request.request;
      Refuse(request, FailureKind::kTooLarge, *why, out);
      return true;
    }
    const GroupOffer best = BestFor(*front, group);
    if (best.shortage) return Defer(*front, *best.shortage, groups_.at(best.group), out);
    if (best.group != group.id()) return false;  // at the next step of a less loaded group
    if (const auto join = group.CheckJoin(*front)) {
      return Explain(*front, {Budget::kPrefix, join->shared, join->present}, join->owner, out);
    }
    if (const auto shortage = group.CheckStep(*front)) {
      return Defer(*front, *shortage, group, out);
    }
    NoteLeaving(*front);
    ++changes_;
    placement_.Admitted(best.group, best.uncached_tokens);
    group.Admit(queue_.Admit(*front), SequenceId(++last_sequence_), now_, out);
    return true;
  }

  // The front of the queue. A static batch of equals may take somebody behind it.
  WaitingRequest* Candidate(const GroupScheduler& group) {
    WaitingRequest* const front = queue_.Front(group.id());
    if (!group.Selective()) return front;
    WaitingRequest* request = front;
    while (request != nullptr && group.Check(*request)) request = queue_.Behind(*request);
    return request != nullptr ? request : front;
  }

  std::unique_ptr<OrderPolicy> MakeOrder() {
    if (config_.order != Order::kLongestPrefix) return MakeKeyOrder(config_.order);
    return std::make_unique<PrefixOrder>([this](GroupId group, const Work& work) -> std::uint64_t {
      const auto it = groups_.find(group);
      return it == groups_.end() ? 0 : it->second.CachedTokens(work);
    });
  }

  // Every group asks where the front should go, and most of them learn that it is not to them: the
  // answer is kept until something changes, or 64 groups would compare 64 groups each.
  const GroupOffer& BestFor(const WaitingRequest& front, const GroupScheduler& asking) {
    const bool known = reach_ != Reach::kOwn && best_for_ == front.number && best_at_ == changes_;
    if (known) return best_;
    best_ = *placement_.Choose(OffersFor(front, asking), reach_ != Reach::kAll);
    best_for_ = front.number;
    best_at_ = changes_;
    return best_;
  }

  const std::vector<GroupOffer>& OffersFor(const Work& work, const GroupScheduler& asking) {
    offers_.clear();
    if (reach_ == Reach::kOwn && asking.plans_in_flight() == 0) AddOffer(asking, work);
    if (!offers_.empty() && !offers_.front().shortage) return offers_;
    offers_.clear();
    for (const auto& [id, group] : groups_) AddOffer(group, work);
    return offers_;
  }

  void AddOffer(const GroupScheduler& group, const Work& work) {
    if (group.WhyNeverFits(work.request)) return;
    const std::uint64_t tokens = work.request.prompt.size() + work.generated.size();
    offers_.push_back({group.id(), group.running(), group.Check(work), group.plans_in_flight(),
                       tokens - group.CachedTokens(work)});
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

  // Always false: the request goes on waiting.
  bool Defer(WaitingRequest& waiting, const Shortage& shortage, const GroupScheduler& group,
             Outputs& out) {
    return Explain(waiting, shortage, group.OldestRunning(), out);
  }

  // A reason is recorded when it changes. What a step has left of its token budget differs from
  // step to step and is no news by itself.
  bool Explain(WaitingRequest& waiting, const Shortage& shortage, std::optional<RequestId> behind,
               Outputs& out) {
    const bool of_a_step =
        shortage.budget == Budget::kStepTokens || shortage.budget == Budget::kPrefillTokens;
    const bool same_budget = waiting.deferred.budget == shortage.budget;
    if (same_budget && (of_a_step || (waiting.deferred == shortage && waiting.behind == behind))) {
      return false;
    }
    CountReason(waiting.deferred.budget, -1);
    CountReason(shortage.budget, 1);
    waiting.deferred = shortage;
    waiting.behind = behind;
    Decision& decision = Decide(waiting.request.request, DecisionKind::kDeferred, out);
    decision.short_of = shortage.budget;
    decision.needed = shortage.needed;
    decision.available = shortage.available;
    decision.behind = behind;
    return false;
  }

  void CountReason(Budget budget, int change) {
    reasons_[static_cast<std::size_t>(budget)] += static_cast<std::uint32_t>(change);
  }

  // The one behind a request that leaves the queue has somebody else before it then.
  void NoteLeaving(const WaitingRequest& leaves) {
    CountReason(leaves.deferred.budget, -1);
    if (const WaitingRequest* behind = queue_.Behind(leaves)) {
      moved_.push_back(behind->request.request);
    }
  }

  // Requests that came or changed their place and stay in the queue learn why: no group, or
  // somebody before them. The front waits for what the last plan was short of, or for a result.
  void ExplainPlaces(Outputs& out) {
    for (const RequestId request : moved_) {
      WaitingRequest* waiting = queue_.Find(request);
      if (waiting == nullptr) continue;
      if (groups_.empty()) {
        Explain(*waiting, {Budget::kGroup, 1, 0}, {}, out);
      } else if (const auto* ahead = queue_.Ahead(*waiting, groups_.begin()->first)) {
        Explain(*waiting, {Budget::kOrder, 1, 0}, ahead->request.request, out);
      }
    }
    moved_.clear();
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
  Placement placement_;
  Reach reach_ = Reach::kAll;
  OutputLengths lengths_;
  std::map<GroupId, GroupScheduler> groups_;  // those that are up
  std::uint64_t last_sequence_ = 0;
  bool draining_ = false;
  std::vector<GroupOffer> offers_;  // of OffersFor
  std::uint64_t changes_ = 0;       // of anything that an offer depends on
  GroupOffer best_;                 // for the request with this number, after so many changes
  std::uint64_t best_for_ = 0;
  std::uint64_t best_at_ = 0;
  std::vector<RequestId> moved_;  // came to the queue or to another place in it, by this input
  std::array<std::uint32_t, kBudgets> reasons_{};  // waiting requests by the reason recorded last
};

Scheduler::Scheduler(Config config) : impl_(std::make_unique<Impl>(config)) {}
Scheduler::~Scheduler() = default;

void Scheduler::Apply(const Input& input, Outputs& out) { impl_->Apply(input, out); }

Snapshot Scheduler::Inspect() const { return impl_->Inspect(); }
Snapshot Scheduler::InspectGroup(GroupId group) const { return impl_->InspectGroup(group); }

}  // namespace penstock::scheduler
