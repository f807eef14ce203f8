// Requests that wait for admission, of all replica groups together: a request is bound to a group
// only when it is admitted. The queue is bounded for new requests, which are refused when it is
// full. A preempted request was in the queue before and always fits.
//
// The next request is:
//   1. a preempted request, the oldest arrival first
//   2. the oldest request, if it was overtaken as often as the policy allows, or is due: it waited
//      as many steps as the policy allows
//   3. the request that the OrderPolicy names
//
// The oldest is the one that came to the queue first. A request that yielded to one that was due
// comes again as the youngest.
//
// A request is overtaken when one that came later is admitted before it. Any request that
// overtakes some request also overtakes all older ones, so the oldest was overtaken most. Counts
// are kept as differences along the order of coming, in constant time.
//
// O(log n) for each operation. Does not allocate after it had its greatest length.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "scheduler/order/order_policy.h"
#include "scheduler/order/waiting_request.h"

namespace penstock::scheduler {

class RequestQueue {
 public:
  // `max_wait`: in steps; 0 = no limit.
  RequestQueue(std::uint32_t capacity, std::unique_ptr<OrderPolicy> order,
               std::uint32_t max_overtakes, std::uint32_t max_wait = 0);

  bool full() const { return size() - restarts_.size() - yielded_ >= capacity_; }
  bool empty() const { return size() == 0; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(by_request_.size()); }
  std::uint32_t capacity() const { return capacity_; }

  // full() must be false.
  WaitingRequest& Push(Arrival arrival);
  // A preempted request comes back, before all that never ran.
  WaitingRequest& PushRestart(Work work);
  // One that yielded comes back, in its order.
  WaitingRequest& PushYielded(Work work);
  // A group made a step.
  void CountStep() { ++steps_; }

  // The request to admit next to this group, of those that `fits` accepts; null when there is none.
  // The others wait for another group. In place of one of them the earliest arrival comes.
  using Fits = std::function<bool(const WaitingRequest&)>;
  WaitingRequest* Front(GroupId group, const Fits& fits);
  // The same of all requests.
  WaitingRequest* Front(GroupId group);
  // The oldest request, if it is due; else null.
  WaitingRequest* Due() { return IsDue(oldest_) ? oldest_ : nullptr; }
  // The first in the order, of those that are no restarts. Null if none waits or the order does
  // not know.
  WaitingRequest* First() { return order_->First(); }
  // The request before it, which is not `front`. Null if the order does not know.
  WaitingRequest* Before(const WaitingRequest& request, WaitingRequest& front);
  // The request after it; null at the end, or if the order does not know.
  WaitingRequest* After(const WaitingRequest& request);
  // Null when it does not wait here.
  WaitingRequest* Find(RequestId request);

  // All that ran, the oldest arrival last. Constant if none yielded, else O(n log n).
  std::vector<WaitingRequest*> Ran() const;
  // All requests: first the preempted ones, then the others as they came. O(n).
  std::vector<const WaitingRequest*> All() const;

  // Leaves for a group. It overtakes all requests that came before it.
  Work Admit(WaitingRequest& request);
  // Leaves without having run.
  Work Remove(WaitingRequest& request);

  // How often the oldest request was overtaken; no other one was overtaken more.
  std::uint64_t most_overtaken() const { return oldest_overtaken_; }

 private:
  WaitingRequest& Take(Work work);
  WaitingRequest& Link(WaitingRequest& place);
  // The preferred request among those that are no restarts.
  WaitingRequest* Preferred(GroupId group);
  Work Leave(WaitingRequest& request);
  void Unlink(WaitingRequest& request);
  bool IsDue(const WaitingRequest* request) const {
    return request != nullptr && max_wait_ > 0 && steps_ - request->since >= max_wait_;
  }
  bool OldestIsNext() const {
    return oldest_ != nullptr && (oldest_overtaken_ >= max_overtakes_ || IsDue(oldest_));
  }

  const std::uint32_t capacity_;
  const std::unique_ptr<OrderPolicy> order_;
  const std::uint64_t max_overtakes_;
  const std::uint64_t max_wait_;
  std::uint64_t steps_ = 0;
  std::uint32_t yielded_ = 0;  // of the waiting requests
  std::uint64_t last_number_ = 0;

  std::deque<WaitingRequest> places_;  // stable addresses
  std::vector<WaitingRequest*> free_;
  std::vector<WaitingRequest*> restarts_;  // oldest arrival last
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::unordered_map<RequestId, WaitingRequest*> by_request_{&nodes_};
  WaitingRequest* oldest_ = nullptr;
  WaitingRequest* youngest_ = nullptr;
  std::uint64_t oldest_overtaken_ = 0;  // sum of `overtaken` of all
};

}  // namespace penstock::scheduler
