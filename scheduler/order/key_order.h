// Orders by a number that never changes while a request waits: fcfs, priority, shortest-predicted
// and learned. O(log n) for each operation. A queue that keeps its length does not allocate.
#pragma once

#include <cstdint>
#include <functional>
#include <memory_resource>
#include <set>
#include <utility>

#include "scheduler/order/order_policy.h"
#include "scheduler/order/waiting_request.h"

namespace penstock::scheduler {

class KeyOrder final : public OrderPolicy {
 public:
  // The rank of a request that comes to the queue; the smallest is next.
  using KeyOf = std::function<std::int64_t(const Work&)>;

  explicit KeyOrder(KeyOf key_of) : key_of_(std::move(key_of)) {}

  void Add(WaitingRequest& request) override;
  void Remove(WaitingRequest& request) override;
  WaitingRequest* Next(GroupId group) override;
  WaitingRequest* First() override;
  WaitingRequest* Before(const WaitingRequest& request) override;
  WaitingRequest* After(const WaitingRequest& request) override;

 private:
  struct Place {
    std::int64_t key = 0;
    std::uint64_t number = 0;
    WaitingRequest* request = nullptr;
    friend bool operator<(const Place& a, const Place& b) {
      return a.key != b.key ? a.key < b.key : a.number < b.number;
    }
  };

  static Place PlaceOf(const WaitingRequest& request) {
    return {request.key, request.number, nullptr};
  }

  const KeyOf key_of_;
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::set<Place> places_{&nodes_};
};

}  // namespace penstock::scheduler
