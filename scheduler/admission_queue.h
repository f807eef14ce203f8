// The waiting requests, and why each of them waits.
//
// Every waiting request has a recorded reason: a budget that is short, no group, or a request
// that is before it. A new reason is a kDeferred decision. Counts by reason are kept for gauges.
//
// Not synchronised; one owner, the Scheduler.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "scheduler/admission/shortage.h"
#include "scheduler/config.h"
#include "scheduler/order/order_policy.h"
#include "scheduler/order/request_queue.h"
#include "scheduler/output.h"

namespace penstock::scheduler {

class AdmissionQueue {
 public:
  AdmissionQueue(const Config& config, RequestQueue::MakeOrder make_order)
      : requests_(config.max_waiting_requests, std::move(make_order),
                  {MaxOvertakes(config), MaxWait(config)}) {}

  bool empty() const { return requests_.empty(); }
  bool full() const { return requests_.full(); }
  std::uint32_t size() const { return requests_.size(); }
  std::uint32_t capacity() const { return requests_.capacity(); }
  // Waiting requests by recorded reason. kNone: no reason yet, the next step examines them.
  const std::array<std::uint32_t, kBudgets>& reasons() const { return reasons_; }

  // Null when it does not wait.
  WaitingRequest* Find(RequestId request) { return requests_.Find(request); }
  // The first request to admit to this group, among those that `fits` accepts; null: there is none.
  WaitingRequest* Front(GroupId group, const RequestQueue::Fits& fits) {
    return requests_.Front(group, fits);
  }
  // Those that ran before, the oldest arrival last.
  std::vector<WaitingRequest*> Ran() const { return requests_.Ran(); }
  // The request for which others yield on the group; null: there is none.
  const WaitingRequest* Due(const RequestQueue::Fits& fits) { return requests_.Due(fits); }
  // A group made a step.
  void CountStep() { requests_.CountStep(); }
  // The request after this one, if the order knows it.
  WaitingRequest* After(const WaitingRequest& request) { return requests_.After(request); }

  // full() must be false.
  void Push(const Arrival& arrival);
  // Preempted requests come back.
  void Requeue(std::vector<Work> preempted, Time now, Outputs& out);
  // Leaves for a group.
  Work Admit(WaitingRequest& request);
  // Leaves without a group.
  Work Remove(WaitingRequest& request);

  // Records why the request waits and, if it is known, which request it waits for.
  void Defer(WaitingRequest& request, const Shortage& shortage, std::optional<RequestId> waits_for,
             Time now, Outputs& out);
  // The first group came up or the last one went down: all requests need a new reason.
  void MarkAllChanged();
  // Records a reason for requests whose place in the queue changed: no group, or the request before
  // them. `first_group` is a group that is up, if there is one.
  void ExplainChanged(std::optional<GroupId> first_group, Time now, Outputs& out);

 private:
  void Enter(const WaitingRequest& request);
  void ForgetOrder(WaitingRequest& front);
  void Leave(const WaitingRequest& request);
  void Count(Budget budget, int change);

  RequestQueue requests_;
  std::vector<RequestId> changed_;  // came to the queue or to another place in it
  std::array<std::uint32_t, kBudgets> reasons_{};
};

}  // namespace penstock::scheduler
