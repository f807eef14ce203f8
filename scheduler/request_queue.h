// Requests that wait for admission, oldest first (Order::kFcfs), across all replica groups: a
// request is bound to a group only when it is admitted. Bounded: a full queue refuses.
#pragma once

#include <cstdint>
#include <deque>

#include "scheduler/input.h"
#include "scheduler/output.h"

namespace penstock::scheduler {

struct WaitingRequest {
  Arrival arrival;
  Budget deferred_by = Budget::kNone;  // last recorded reason, so that it is recorded once
};

class RequestQueue {
 public:
  explicit RequestQueue(std::uint32_t capacity) : capacity_(capacity) {}

  bool full() const { return waiting_.size() >= capacity_; }
  bool empty() const { return waiting_.empty(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(waiting_.size()); }
  std::uint32_t capacity() const { return capacity_; }

  // full() must be false.
  void Push(Arrival arrival);
  // The request that goes next. The queue must not be empty.
  WaitingRequest& Front() { return waiting_.front(); }
  WaitingRequest& Back() { return waiting_.back(); }
  Arrival Pop();
  // Takes a request out of its place; false when it does not wait here.
  bool Remove(RequestId request);

 private:
  std::uint32_t capacity_;
  std::deque<WaitingRequest> waiting_;
};

}  // namespace penstock::scheduler
