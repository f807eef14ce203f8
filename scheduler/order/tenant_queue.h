// The waiting requests of one account that never ran, and the account. Within it the OrderPolicy
// decides, and the bound on overtaking holds.
//
// Counts of overtaking are kept as differences along the order of arrival, in constant time: any
// request that overtakes some request also overtakes all older ones, so the oldest was overtaken
// most.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "common/ids.h"
#include "scheduler/order/account.h"
#include "scheduler/order/order_policy.h"
#include "scheduler/order/waiting_request.h"

namespace penstock::scheduler {

class TenantQueue {
 public:
  using Fits = std::function<bool(const WaitingRequest&)>;

  TenantQueue(std::unique_ptr<OrderPolicy> order, std::uint64_t max_overtakes)
      : order_(std::move(order)), max_overtakes_(max_overtakes) {}

  Account& account() { return account_; }
  bool empty() const { return oldest_ == nullptr; }
  // empty() must be false. The oldest request has the smallest number.
  std::uint64_t oldest_number() const { return oldest_->number; }
  // How often the oldest request was overtaken; no other one was overtaken more.
  std::uint64_t most_overtaken() const { return oldest_overtaken_; }

  // The requests stay where they are until they leave. Push: it is younger than all others.
  void Push(WaitingRequest& request);
  // It leaves for a group, and overtakes all requests that arrived before it.
  void Admit(WaitingRequest& request);
  void Remove(WaitingRequest& request);

  // The oldest request, if it was overtaken as often as allowed, or the one that the order names.
  WaitingRequest* Preferred(GroupId group);
  // That one if it fits, or the earliest arrival that does; null: there is none.
  WaitingRequest* Front(GroupId group, const Fits& fits);

  // As of OrderPolicy.
  WaitingRequest* First() { return order_->First(); }
  WaitingRequest* Before(const WaitingRequest& request) { return order_->Before(request); }
  WaitingRequest* After(const WaitingRequest& request) { return order_->After(request); }

 private:
  void Unlink(WaitingRequest& request);
  bool OldestIsDue() const { return oldest_ != nullptr && oldest_overtaken_ >= max_overtakes_; }

  Account account_;
  const std::unique_ptr<OrderPolicy> order_;
  const std::uint64_t max_overtakes_;
  WaitingRequest* oldest_ = nullptr;
  WaitingRequest* youngest_ = nullptr;
  std::uint64_t oldest_overtaken_ = 0;  // sum of `overtaken` of all
};

}  // namespace penstock::scheduler
