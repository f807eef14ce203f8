#include "scheduler/request_queue.h"

#include <algorithm>
#include <utility>

#include "scheduler/check.h"

namespace penstock::scheduler {

void RequestQueue::Push(Arrival arrival) {
  PENSTOCK_CHECK(!full(), "the queue is bounded");
  waiting_.push_back({std::move(arrival), Budget::kNone});
}

Arrival RequestQueue::Pop() {
  PENSTOCK_CHECK(!empty(), "only a waiting request is taken");
  Arrival arrival = std::move(waiting_.front().arrival);
  waiting_.pop_front();
  return arrival;
}

bool RequestQueue::Remove(RequestId request) {
  const auto it =
      std::find_if(waiting_.begin(), waiting_.end(),
                   [request](const WaitingRequest& w) { return w.arrival.request == request; });
  if (it == waiting_.end()) return false;
  waiting_.erase(it);
  return true;
}

}  // namespace penstock::scheduler
