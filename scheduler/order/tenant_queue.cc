#include "scheduler/order/tenant_queue.h"

#include <utility>

namespace penstock::scheduler {

void TenantQueue::Push(WaitingRequest& request) {
  request.overtaken = 0;
  request.older = std::exchange(youngest_, &request);
  request.younger = nullptr;
  (request.older != nullptr ? request.older->younger : oldest_) = &request;
  order_->Add(request);
}

void TenantQueue::Admit(WaitingRequest& request) {
  request.due = IsDue(request);
  if (request.older != nullptr) {
    ++request.older->overtaken;
    ++oldest_overtaken_;
  }
  Remove(request);
}

void TenantQueue::Remove(WaitingRequest& request) {
  order_->Remove(request);
  Unlink(request);
}

WaitingRequest* TenantQueue::Preferred(GroupId group) {
  return OldestIsNext() ? oldest_ : order_->Next(group);
}

WaitingRequest* TenantQueue::Front(GroupId group, const Fits& fits) {
  WaitingRequest* front = Preferred(group);
  return front == nullptr || fits(*front) ? front : FirstThatFits(fits);
}

WaitingRequest* TenantQueue::FirstThatFits(const Fits& fits) {
  WaitingRequest* first = oldest_;
  while (first != nullptr && !fits(*first)) first = first->younger;
  return first;
}

void TenantQueue::Unlink(WaitingRequest& request) {
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
