#include "scheduler/scheduler.h"

#include <algorithm>
#include <memory>
#include <string>

#include "common/check.h"
#include "scheduler/admission_queue.h"
#include "scheduler/decide.h"
#include "scheduler/order/prefix_order.h"
#include "scheduler/replica_groups.h"
#include "scheduler/step_loop.h"

namespace penstock::scheduler {
namespace {

std::unique_ptr<OrderPolicy> MakeOrder(Order order, const ReplicaGroups& groups) {
  if (order != Order::kLongestPrefix) return MakeKeyOrder(order);
  return std::make_unique<PrefixOrder>(
      [&groups](GroupId group, const Work& work) { return groups.CachedTokens(group, work); });
}

}  // namespace

// Applies each input to the queue or to a group; StepLoop makes the plans after that.
class Scheduler::Impl {
 public:
  explicit Impl(const Config& config);

  void Apply(const Input& input, Outputs& out);
  Snapshot Inspect() const;
  Snapshot InspectGroup(GroupId id) const;

 private:
  void On(const Arrival& arrival, Outputs& out);
  void On(const Cancel& cancel, Outputs& out);
  void On(const FinishAt& finish, Outputs& out);
  void On(const StepDone& done, Outputs& out);
  void On(const GroupUp& up, Outputs& out);
  void On(const GroupLost& lost, Outputs& out);
  void On(const ForgetPrefixes& prefixes, Outputs& out);
  void On(const Drain&, Outputs&) { draining_ = true; }

  void LoseGroup(GroupId group, const std::string& reason, Outputs& out);
  void FinishRestart(WaitingRequest& waiting, const FinishAt& finish, Outputs& out);
  void FinishWaiting(WaitingRequest& waiting, FinishReason reason, std::uint32_t tokens,
                     Outputs& out);

  Time now_ = Time::min();
  bool draining_ = false;
  ReplicaGroups groups_;
  AdmissionQueue queue_;
  StepLoop steps_;
};

Scheduler::Impl::Impl(const Config& config)
    : groups_(config), queue_(config, MakeOrder(config.order, groups_)), steps_(groups_, queue_) {
  PENSTOCK_CHECK(!WhyInvalid(config), "the configuration was validated");
}

void Scheduler::Impl::Apply(const Input& input, Outputs& out) {
  PENSTOCK_CHECK(input.now >= now_, "time does not run backwards");
  now_ = input.now;
  std::visit([this, &out](const auto& what) { On(what, out); }, input.what);
  groups_.MarkChanged();
  steps_.Run(now_, out);
  queue_.ExplainChanged(groups_.First(), now_, out);
  for (auto& [id, group] : groups_.all()) group.EmitPinChanges(out);
}

Snapshot Scheduler::Impl::Inspect() const {
  Snapshot sum;
  sum.waiting = queue_.size();
  sum.waiting_for = queue_.reasons();
  for (const auto& [id, group] : groups_.all()) group.AddTo(sum);
  return sum;
}

Snapshot Scheduler::Impl::InspectGroup(GroupId id) const {
  Snapshot snapshot;
  if (const GroupScheduler* group = groups_.Find(id)) group->AddTo(snapshot);
  return snapshot;
}

void Scheduler::Impl::On(const Arrival& arrival, Outputs& out) {
  Decide(arrival.request, DecisionKind::kQueued, now_, out);
  if (draining_) {
    return Refuse(arrival.request, FailureKind::kDraining, {{}, "The server is shutting down"},
                  now_, out);
  }
  if (const auto why = groups_.WhyNeverFits(arrival)) {
    return Refuse(arrival.request, FailureKind::kTooLarge, *why, now_, out);
  }
  if (queue_.full()) {
    const std::uint64_t limit = queue_.capacity();
    const std::string message = "The queue is full: `max-waiting-requests` is " +
                                std::to_string(limit) + ". Try again later";
    return Refuse(arrival.request, FailureKind::kQueueFull,
                  {{Budget::kQueue, limit + 1, limit}, message}, now_, out);
  }
  queue_.Push(arrival);
}

void Scheduler::Impl::On(const Cancel& cancel, Outputs& out) {
  if (WaitingRequest* waiting = queue_.Find(cancel.request)) {
    return FinishWaiting(*waiting, FinishReason::kCancelled,
                         static_cast<std::uint32_t>(waiting->generated.size()), out);
  }
  for (auto& [id, group] : groups_.all()) {
    if (group.Cancel(cancel.request, now_, out)) return;
  }
}

void Scheduler::Impl::On(const FinishAt& finish, Outputs& out) {
  if (WaitingRequest* waiting = queue_.Find(finish.request)) {
    return FinishRestart(*waiting, finish, out);
  }
  for (auto& [id, group] : groups_.all()) {
    if (group.FinishAt(finish.request, finish.token_count, now_, out)) return;
  }
}

void Scheduler::Impl::On(const StepDone& done, Outputs& out) {
  GroupScheduler* group = groups_.Find(done.group);
  if (group == nullptr || group->epoch() != done.result.epoch) return;
  group->OnResult(done.result, now_, out);
  queue_.Requeue(group->TakePreempted(), now_, out);
}

void Scheduler::Impl::On(const GroupUp& up, Outputs& out) {
  LoseGroup(up.group, "the replica group was formed again", out);
  if (groups_.empty()) queue_.MarkAllChanged();
  groups_.Up(up);
}

void Scheduler::Impl::On(const GroupLost& lost, Outputs& out) {
  const GroupScheduler* group = groups_.Find(lost.group);
  if (group == nullptr || group->epoch() != lost.epoch) return;
  LoseGroup(lost.group, lost.reason, out);
}

void Scheduler::Impl::On(const ForgetPrefixes& prefixes, Outputs&) {
  for (auto& [id, group] : groups_.all()) group.Forget(prefixes);
}

void Scheduler::Impl::LoseGroup(GroupId group, const std::string& reason, Outputs& out) {
  if (groups_.Find(group) == nullptr) return;
  queue_.Requeue(groups_.Lose(group, reason, now_, out), now_, out);
  if (groups_.empty()) queue_.MarkAllChanged();
}

// A stop string of a request that was preempted after the router received its text.
void Scheduler::Impl::FinishRestart(WaitingRequest& waiting, const FinishAt& finish, Outputs& out) {
  if (!waiting.restart()) return;  // it has no output yet
  if (finish.token_count > waiting.generated.size()) {
    waiting.finish_at = std::min(finish.token_count, waiting.finish_at.value_or(UINT32_MAX));
    return;
  }
  FinishWaiting(waiting, FinishReason::kStopString, finish.token_count, out);
}

void Scheduler::Impl::FinishWaiting(WaitingRequest& waiting, FinishReason reason,
                                    std::uint32_t tokens, Outputs& out) {
  const RequestId request = queue_.Remove(waiting).request.request;
  out.AddEvent(request, Finished{reason, tokens});
  Decide(request, DecisionKind::kFinished, now_, out);
}

Scheduler::Scheduler(Config config) : impl_(std::make_unique<Impl>(config)) {}
Scheduler::~Scheduler() = default;

void Scheduler::Apply(const Input& input, Outputs& out) { impl_->Apply(input, out); }

Snapshot Scheduler::Inspect() const { return impl_->Inspect(); }
Snapshot Scheduler::InspectGroup(GroupId group) const { return impl_->InspectGroup(group); }

}  // namespace penstock::scheduler
