#include "scheduler/scheduler.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <ranges>
#include <string>
#include <vector>

#include "common/check.h"
#include "scheduler/admission_queue.h"
#include "scheduler/decide.h"
#include "scheduler/order/learned_order.h"
#include "scheduler/order/prefix_order.h"
#include "scheduler/replica_groups.h"
#include "scheduler/step_loop.h"

namespace penstock::scheduler {
namespace {

std::unique_ptr<OrderPolicy> MakeOrder(const Config& config, const ReplicaGroups& groups) {
  const Order order = config.order;
  if (order == Order::kLearned) return MakeLearnedOrder(config, groups);
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
  std::optional<Time> NextDeadline() const;
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
  void On(const Tick&, Outputs&) {}

  void LoseGroup(const GroupLost& lost, Outputs& out);
  // Groups came or went.
  void SetDeadlines();
  void FailOverdue(Outputs& out);
  void FinishRestart(WaitingRequest& waiting, const FinishAt& finish, Outputs& out);
  void FinishWaiting(WaitingRequest& waiting, FinishReason reason, std::uint32_t tokens,
                     Outputs& out);

  const Duration recovery_timeout_;
  Time now_ = Time::min();
  bool draining_ = false;
  ReplicaGroups groups_;
  AdmissionQueue queue_;
  StepLoop steps_;
};

Scheduler::Impl::Impl(const Config& config)
    : recovery_timeout_(config.recovery_timeout),
      groups_(config),
      queue_(config, [config, this] { return MakeOrder(config, groups_); }),
      steps_(groups_, queue_) {
  PENSTOCK_CHECK(!WhyInvalid(config), "the configuration was validated");
}

void Scheduler::Impl::Apply(const Input& input, Outputs& out) {
  PENSTOCK_CHECK(input.now >= now_, "time does not run backwards");
  now_ = input.now;
  std::visit([this, &out](const auto& what) { On(what, out); }, input.what);
  FailOverdue(out);
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
  LoseGroup({up.group, up.epoch, "the replica group was formed again"}, out);
  if (groups_.empty()) queue_.MarkAllChanged();
  groups_.Up(up);
  SetDeadlines();
}

void Scheduler::Impl::On(const GroupLost& lost, Outputs& out) {
  const GroupScheduler* group = groups_.Find(lost.group);
  if (group == nullptr || group->epoch() != lost.epoch) return;
  LoseGroup(lost, out);
}

void Scheduler::Impl::On(const ForgetPrefixes& prefixes, Outputs&) {
  for (auto& [id, group] : groups_.all()) group.Forget(prefixes);
}

// A server that drains stops its shards, too.
void Scheduler::Impl::LoseGroup(const GroupLost& lost, Outputs& out) {
  if (groups_.Find(lost.group) == nullptr) return;
  GroupLost loss = lost;
  loss.in_order = lost.in_order || draining_;
  queue_.Requeue(groups_.Lose(loss, now_, out), now_, out);
  if (groups_.empty()) queue_.MarkAllChanged();
  SetDeadlines();
}

void Scheduler::Impl::SetDeadlines() {
  if (recovery_timeout_ == Duration(0)) return;
  for (WaitingRequest* waiting : queue_.Ran()) {
    if (groups_.Continue(*waiting)) {
      waiting->fails_at.reset();
    } else if (!waiting->fails_at) {
      waiting->fails_at = now_ + recovery_timeout_;
    }
  }
}

std::optional<Time> Scheduler::Impl::NextDeadline() const {
  std::optional<Time> next;
  if (recovery_timeout_ == Duration(0)) return next;
  for (const WaitingRequest* waiting : queue_.Ran()) {
    if (waiting->fails_at) next = std::min(*waiting->fails_at, next.value_or(Time::max()));
  }
  return next;
}

void Scheduler::Impl::FailOverdue(Outputs& out) {
  if (recovery_timeout_ == Duration(0)) return;
  std::vector<WaitingRequest*> overdue;
  for (WaitingRequest* waiting : queue_.Ran()) {
    if (waiting->fails_at && *waiting->fails_at <= now_) overdue.push_back(waiting);
  }
  for (WaitingRequest* waiting : overdue | std::views::reverse) {  // the oldest arrival first
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(recovery_timeout_);
    const std::string message = "No replica group could continue the request within " +
                                std::to_string(ms.count()) + " ms (--recovery-timeout)";
    const RequestId request = queue_.Remove(*waiting).request.request;
    Refuse(request, FailureKind::kNoGroup, {{Budget::kGroup, 1, 0}, message}, now_, out);
  }
}

// A stop string of a request that was preempted after the router received its text.
void Scheduler::Impl::FinishRestart(WaitingRequest& waiting, const FinishAt& finish, Outputs& out) {
  if (!waiting.ran()) return;  // it has no output yet
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

std::optional<Time> Scheduler::NextDeadline() const { return impl_->NextDeadline(); }
Snapshot Scheduler::Inspect() const { return impl_->Inspect(); }
Snapshot Scheduler::InspectGroup(GroupId group) const { return impl_->InspectGroup(group); }

}  // namespace penstock::scheduler
