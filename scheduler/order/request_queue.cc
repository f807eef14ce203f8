#include "scheduler/order/request_queue.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace penstock::scheduler {

RequestQueue::RequestQueue(std::uint32_t capacity, std::unique_ptr<OrderPolicy> order,
                           std::uint32_t max_overtakes, std::uint32_t max_wait)
    : capacity_(capacity),
      order_(std::move(order)),
      max_overtakes_(max_overtakes),
      max_wait_(max_wait) {}

WaitingRequest& RequestQueue::Take(Work work) {
  if (free_.empty()) free_.push_back(&places_.emplace_back());
  WaitingRequest& place = *free_.back();
  free_.pop_back();
  static_cast<Work&>(place) = std::move(work);
  place.deferred = {};
  place.waits_for.reset();
  place.overtaken = 0;
  place.fails_at.reset();
  PENSTOCK_CHECK(by_request_.emplace(place.request.request, &place).second, "a request waits once");
  return place;
}

WaitingRequest& RequestQueue::Push(Arrival arrival) {
  PENSTOCK_CHECK(!full(), "the queue is bounded");
  Work work;
  work.request = std::move(arrival);
  work.number = ++last_number_;
  return Link(Take(std::move(work)));
}

WaitingRequest& RequestQueue::PushYielded(Work work) {
  ++yielded_;
  return Link(Take(std::move(work)));
}

WaitingRequest& RequestQueue::Link(WaitingRequest& place) {
  place.since = steps_;
  place.older = std::exchange(youngest_, &place);
  place.younger = nullptr;
  (place.older != nullptr ? place.older->younger : oldest_) = &place;
  order_->Add(place);
  return place;
}

WaitingRequest& RequestQueue::PushRestart(Work work) {
  WaitingRequest& place = Take(std::move(work));
  const auto younger = [](const WaitingRequest* a, const WaitingRequest* b) {
    return a->number > b->number;
  };
  restarts_.insert(std::upper_bound(restarts_.begin(), restarts_.end(), &place, younger), &place);
  return place;
}

WaitingRequest* RequestQueue::Front(GroupId group) {
  if (!restarts_.empty()) return restarts_.back();
  return Preferred(group);
}

WaitingRequest* RequestQueue::Preferred(GroupId group) {
  return OldestIsNext() ? oldest_ : order_->Next(group);
}

WaitingRequest* RequestQueue::Front(GroupId group, const Fits& fits) {
  for (auto it = restarts_.rbegin(); it != restarts_.rend(); ++it) {
    if (fits(**it)) return *it;
  }
  WaitingRequest* front = Preferred(group);
  if (front == nullptr || fits(*front)) return front;
  for (front = oldest_; front != nullptr && !fits(*front);) front = front->younger;
  return front;
}

WaitingRequest* RequestQueue::Before(const WaitingRequest& request, WaitingRequest& front) {
  if (request.restart()) {
    return *std::next(std::find(restarts_.begin(), restarts_.end(), &request));
  }
  return order_->First() == &request ? &front : order_->Before(request);
}

WaitingRequest* RequestQueue::After(const WaitingRequest& request) {
  if (!request.restart()) return order_->After(request);
  const auto it = std::find(restarts_.begin(), restarts_.end(), &request);
  return it == restarts_.begin() ? nullptr : *std::prev(it);
}

WaitingRequest* RequestQueue::Find(RequestId request) {
  const auto it = by_request_.find(request);
  return it == by_request_.end() ? nullptr : it->second;
}

std::vector<WaitingRequest*> RequestQueue::Ran() const {
  std::vector<WaitingRequest*> ran = restarts_;
  if (yielded_ == 0) return ran;
  for (WaitingRequest* each = oldest_; each != nullptr; each = each->younger) {
    if (each->yielded) ran.push_back(each);
  }
  std::ranges::sort(ran, std::greater<>(), &WaitingRequest::number);
  return ran;
}

std::vector<const WaitingRequest*> RequestQueue::All() const {
  std::vector<const WaitingRequest*> all(restarts_.rbegin(), restarts_.rend());
  for (const WaitingRequest* each = oldest_; each != nullptr; each = each->younger) {
    all.push_back(each);
  }
  return all;
}

Work RequestQueue::Admit(WaitingRequest& request) {
  request.due = !request.restart() && IsDue(&request);
  if (!request.restart() && request.older != nullptr) {
    ++request.older->overtaken;
    ++oldest_overtaken_;
  }
  return Leave(request);
}

Work RequestQueue::Remove(WaitingRequest& request) { return Leave(request); }

Work RequestQueue::Leave(WaitingRequest& request) {
  if (request.restart()) {
    restarts_.erase(std::find(restarts_.begin(), restarts_.end(), &request));
  } else {
    yielded_ -= request.yielded;
    order_->Remove(request);
    Unlink(request);
  }
  by_request_.erase(request.request.request);
  free_.push_back(&request);
  return std::move(static_cast<Work&>(request));
}

void RequestQueue::Unlink(WaitingRequest& request) {
  if (request.older != nullptr) {
    request.older->overtaken += request.overtaken;
    request.older->younger = request.younger;
  } else {
    oldest_overtaken_ -= request.overtaken;
    oldest_ = request.younger;
  }
  (request.younger != nullptr ? request.younger->older : youngest_) = request.older;
}

}  // namespace penstock::scheduler
