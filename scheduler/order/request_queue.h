// Requests that wait for admission, of all replica groups together: a request is bound to a group
// only when it is admitted. The queue is bounded for new requests, which are refused when it is
// full. A preempted request was in the queue before and always fits.
//
// The next request is:
//   1. a preempted request, the oldest arrival first
//   2. of the tenant that was served least (Account), the first of: the oldest request, if it was
//      overtaken as often as the policy allows or waited as long as it allows; the request that the
//      OrderPolicy names
//
// A request is overtaken when a later request of its tenant is admitted before it. If all requests
// have one account, there is one queue, and the turns of tenants have no effect.
//
// A tenant without waiting requests saves no credit. When its next request comes, its counter is
// raised to the counter of the tenant whose turn it is. If no request waits, it is raised to the
// counter of the tenant that waited last.
//
// O(log n) for each operation, and a look at each tenant that waits. Does not allocate after it had
// its greatest length.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduler/order/order_policy.h"
#include "scheduler/order/tenant_queue.h"
#include "scheduler/order/waiting_request.h"

namespace penstock::scheduler {

class RequestQueue {
 public:
  using MakeOrder = std::function<std::unique_ptr<OrderPolicy>()>;  // one for each tenant

  RequestQueue(std::uint32_t capacity, MakeOrder make_order, const TenantQueue::Limits& limits);
  RequestQueue(const RequestQueue&) = delete;

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
  // The others wait for another group. In place of one of them the earliest arrival of the tenant
  // comes, and then the next tenant.
  using Fits = TenantQueue::Fits;
  WaitingRequest* Front(GroupId group, const Fits& fits);
  // The same of all requests.
  WaitingRequest* Front(GroupId group);
  // The request for which others yield on this group. Of the tenants with a request that fits, it
  // takes the one whose turn it is, and of that one the oldest request. Null if that request is not
  // due, or does not fit.
  const WaitingRequest* Due(const Fits& fits);
  // Adds the first new request of each tenant. Restarts do not count. Adds none where the order
  // does not know its first.
  void AddFirsts(std::vector<RequestId>& requests);
  // The request of its tenant before it, or `front`, which it is not, if it is the first. Null if
  // the order does not know.
  WaitingRequest* Before(const WaitingRequest& request, WaitingRequest& front);
  // The request of its tenant after it; null at the end, or if the order does not know.
  WaitingRequest* After(const WaitingRequest& request);
  // Null when it does not wait here.
  WaitingRequest* Find(RequestId request);

  // All that ran, the oldest arrival last. Constant if none yielded, else O(n log n).
  std::vector<WaitingRequest*> Ran() const;
  // All requests: first the preempted ones, then the others as they came. O(n).
  std::vector<const WaitingRequest*> All() const;

  // Leaves for a group. It overtakes all requests of its tenant that came before it.
  Work Admit(WaitingRequest& request);
  // Leaves without having run.
  Work Remove(WaitingRequest& request);

  // How often the most overtaken request was overtaken.
  std::uint64_t most_overtaken() const;

 private:
  WaitingRequest& Take(Work work);
  TenantQueue& TenantOf(const std::string& account);
  // The request comes to the tenant, as the youngest.
  WaitingRequest& Enter(TenantQueue& tenant, Work work);
  // The tenant gets its first waiting request.
  void Join(TenantQueue& tenant);
  // The waiting tenant whose turn comes after that of another one, or before all others.
  TenantQueue* NextTurn(TenantQueue* after);
  void LeaveTenant(WaitingRequest& request, bool admitted);
  Work Leave(WaitingRequest& request, bool admitted);

  const std::uint32_t capacity_;
  const MakeOrder make_order_;
  const TenantQueue::Limits limits_;
  std::uint64_t steps_ = 0;
  std::uint32_t yielded_ = 0;  // of the waiting requests
  std::uint64_t last_number_ = 0;
  std::uint64_t last_place_ = 0;

  std::map<std::string, TenantQueue> tenants_;  // by account; kept while they wait for nothing
  std::vector<TenantQueue*> waiting_;           // those with requests that are no restarts
  TenantQueue* last_ = nullptr;                 // the one that left `waiting_` last

  std::deque<WaitingRequest> places_;  // stable addresses
  std::vector<WaitingRequest*> free_;
  std::vector<WaitingRequest*> restarts_;  // oldest arrival last
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::unordered_map<RequestId, WaitingRequest*> by_request_{&nodes_};
};

}  // namespace penstock::scheduler
