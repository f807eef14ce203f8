// Requests that wait for admission, across all replica groups: a request is bound to a group only
// when it is admitted. Bounded for arrivals: a full queue refuses them. A preempted request was let
// in before and always finds room.
//
// Who goes first:
//   1. preempted requests, the oldest arrival first
//   2. the oldest request that waits, when it was overtaken as often as the policy allows
//   3. whom the OrderPolicy names
// A request is overtaken when one that arrived later leaves the queue for a group before it. The
// oldest was overtaken most, since whoever overtakes a younger one overtakes it too; so counts are
// kept as differences along the order of arrival, in constant time.
//
// O(log n) per operation; allocation-free once it has had its greatest length.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "scheduler/order/order_policy.h"
#include "scheduler/order/waiting_request.h"

namespace penstock::scheduler {

class RequestQueue {
 public:
  RequestQueue(std::uint32_t capacity, std::unique_ptr<OrderPolicy> order,
               std::uint32_t max_overtakes);

  bool full() const { return size() - restarts_.size() >= capacity_; }
  bool empty() const { return size() == 0; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(by_request_.size()); }
  std::uint32_t capacity() const { return capacity_; }

  // full() must be false.
  WaitingRequest& Push(Arrival arrival);
  // A preempted request comes back.
  WaitingRequest& PushRestart(Work work);

  // Who goes next on this group; null when nobody waits.
  WaitingRequest* Front(GroupId group);
  // Who must go before it; null when it is the front.
  WaitingRequest* Before(const WaitingRequest& request, GroupId group);
  // Who waits directly behind it, where the order knows; else null.
  WaitingRequest* After(const WaitingRequest& request);
  // Null when it does not wait here.
  WaitingRequest* Find(RequestId request);

  // Everybody, oldest arrival first, preempted ones before. Takes time in proportion.
  std::vector<const WaitingRequest*> All() const;

  // Leaves for a group; those who arrived before it were overtaken.
  Work Admit(WaitingRequest& request);
  // Leaves without having run.
  Work Remove(WaitingRequest& request);

  // Over the oldest of those that never ran; nobody was overtaken more.
  std::uint64_t most_overtaken() const { return oldest_overtaken_; }

 private:
  WaitingRequest& Take(Work work);
  Work Leave(WaitingRequest& request);
  void Unlink(WaitingRequest& request);
  bool OldestIsDue() const { return oldest_ != nullptr && oldest_overtaken_ >= max_overtakes_; }

  const std::uint32_t capacity_;
  const std::unique_ptr<OrderPolicy> order_;
  const std::uint64_t max_overtakes_;
  std::uint64_t last_number_ = 0;

  std::deque<WaitingRequest> places_;  // stable addresses
  std::vector<WaitingRequest*> free_;
  std::vector<WaitingRequest*> restarts_;  // oldest arrival last; as many as were running at most
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::unordered_map<RequestId, WaitingRequest*> by_request_{&nodes_};
  WaitingRequest* oldest_ = nullptr;
  WaitingRequest* youngest_ = nullptr;
  std::uint64_t oldest_overtaken_ = 0;  // sum of `overtaken` of all
};

}  // namespace penstock::scheduler
