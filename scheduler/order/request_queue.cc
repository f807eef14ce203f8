#include "scheduler/order/request_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/check.h"

namespace penstock::scheduler {

RequestQueue::RequestQueue(std::uint32_t capacity, MakeOrder make_order,
                           const TenantQueue::Limits& limits)
    : capacity_(capacity), make_order_(std::move(make_order)), limits_(limits) {}

WaitingRequest& RequestQueue::Take(Work work) {
  if (free_.empty()) free_.push_back(&places_.emplace_back());
  WaitingRequest& place = *free_.back();
  free_.pop_back();
  static_cast<Work&>(place) = std::move(work);
  place.deferred = {};
  place.waits_for.reset();
  place.fails_at.reset();
  PENSTOCK_CHECK(by_request_.emplace(place.request.request, &place).second, "a request waits once");
  return place;
}

TenantQueue& RequestQueue::TenantOf(const std::string& account) {
  const auto found = tenants_.find(account);
  if (found != tenants_.end()) return found->second;
  return tenants_.try_emplace(account, make_order_(), limits_, steps_).first->second;
}

void RequestQueue::Join(TenantQueue& tenant) {
  TenantQueue* const turn = waiting_.empty() ? last_ : NextTurn(nullptr);
  std::uint64_t& served = tenant.account().served;
  if (turn != nullptr) served = std::max(served, turn->account().served);
  waiting_.push_back(&tenant);
}

TenantQueue* RequestQueue::NextTurn(TenantQueue* after) {
  const auto turn = [](TenantQueue& tenant) {
    return std::make_pair(tenant.account().served, tenant.oldest().place);
  };
  TenantQueue* next = nullptr;
  for (TenantQueue* const tenant : waiting_) {
    if (after != nullptr && turn(*tenant) <= turn(*after)) continue;
    if (next == nullptr || turn(*tenant) < turn(*next)) next = tenant;
  }
  return next;
}

WaitingRequest& RequestQueue::Push(Arrival arrival) {
  PENSTOCK_CHECK(!full(), "the queue is bounded");
  TenantQueue& tenant = TenantOf(arrival.account);
  if (tenant.empty()) Join(tenant);
  tenant.account().weight = std::max(1u, arrival.weight);
  Work work;
  work.request = std::move(arrival);
  work.number = ++last_number_;
  return Enter(tenant, std::move(work));
}

WaitingRequest& RequestQueue::PushYielded(Work work) {
  TenantQueue& tenant = TenantOf(work.request.account);
  if (tenant.empty()) Join(tenant);
  ++yielded_;
  return Enter(tenant, std::move(work));
}

WaitingRequest& RequestQueue::Enter(TenantQueue& tenant, Work work) {
  work.account = &tenant.account();
  WaitingRequest& place = Take(std::move(work));
  place.tenant = &tenant;
  place.place = ++last_place_;
  place.since = steps_;
  tenant.Push(place);
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
  return Front(group, [](const WaitingRequest&) { return true; });
}

WaitingRequest* RequestQueue::Front(GroupId group, const Fits& fits) {
  for (auto it = restarts_.rbegin(); it != restarts_.rend(); ++it) {
    if (fits(**it)) return *it;
  }
  for (TenantQueue* tenant = NextTurn(nullptr); tenant != nullptr; tenant = NextTurn(tenant)) {
    if (WaitingRequest* front = tenant->Front(group, fits)) return front;
  }
  return nullptr;
}

const WaitingRequest* RequestQueue::Due(const Fits& fits) {
  if (limits_.wait == 0) return nullptr;
  for (TenantQueue* tenant = NextTurn(nullptr); tenant != nullptr; tenant = NextTurn(tenant)) {
    const WaitingRequest* const first = tenant->FirstThatFits(fits);
    if (first == nullptr) continue;
    return first == &tenant->oldest() && tenant->IsDue(*first) ? first : nullptr;
  }
  return nullptr;
}

void RequestQueue::AddFirsts(std::vector<RequestId>& requests) {
  for (auto& [account, tenant] : tenants_) {
    if (const WaitingRequest* first = tenant.First()) requests.push_back(first->request.request);
  }
}

WaitingRequest* RequestQueue::Before(const WaitingRequest& request, WaitingRequest& front) {
  if (request.restart()) {
    return *std::next(std::find(restarts_.begin(), restarts_.end(), &request));
  }
  TenantQueue& tenant = *request.tenant;
  return tenant.First() == &request ? &front : tenant.Before(request);
}

WaitingRequest* RequestQueue::After(const WaitingRequest& request) {
  if (!request.restart()) return request.tenant->After(request);
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
  for (const auto& [id, request] : by_request_) {
    if (request->yielded) ran.push_back(request);
  }
  std::ranges::sort(ran, std::greater<>(), &WaitingRequest::number);
  return ran;
}

std::vector<const WaitingRequest*> RequestQueue::All() const {
  std::vector<const WaitingRequest*> all(restarts_.rbegin(), restarts_.rend());
  for (const auto& [id, request] : by_request_) {
    if (!request->restart()) all.push_back(request);
  }
  const auto others = all.begin() + static_cast<std::ptrdiff_t>(restarts_.size());
  std::sort(others, all.end(), [](const auto* a, const auto* b) { return a->place < b->place; });
  return all;
}

Work RequestQueue::Admit(WaitingRequest& request) { return Leave(request, true); }

Work RequestQueue::Remove(WaitingRequest& request) { return Leave(request, false); }

void RequestQueue::LeaveTenant(WaitingRequest& request, bool admitted) {
  TenantQueue& tenant = *request.tenant;
  if (admitted) {
    tenant.Admit(request);
  } else {
    tenant.Remove(request);
  }
  if (!tenant.empty()) return;
  std::erase(waiting_, &tenant);
  last_ = &tenant;
}

Work RequestQueue::Leave(WaitingRequest& request, bool admitted) {
  request.due = false;
  if (request.restart()) {
    restarts_.erase(std::find(restarts_.begin(), restarts_.end(), &request));
  } else {
    yielded_ -= request.yielded;
    LeaveTenant(request, admitted);
  }
  by_request_.erase(request.request.request);
  free_.push_back(&request);
  return std::move(static_cast<Work&>(request));
}

std::uint64_t RequestQueue::most_overtaken() const {
  std::uint64_t most = 0;
  for (const auto& [account, tenant] : tenants_) most = std::max(most, tenant.most_overtaken());
  return most;
}

}  // namespace penstock::scheduler
