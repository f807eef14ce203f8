// The waiting requests of one account that are no restarts, and the account. Within it the
// OrderPolicy decides, and the bounds on overtaking and on waiting hold.
//
// The oldest request is the one that came to the queue first. A request that yielded to one that
// was due comes again, as the youngest.
//
// Counts of overtaking are kept as differences along the order of coming, in constant time: any
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

  struct Limits {
    std::uint64_t overtakes = 0;
    std::uint64_t wait = 0;  // in steps of all groups, after which a request is due; 0 = no limit
  };

  // `steps`: that were made so far. Must outlive the queue.
  TenantQueue(std::unique_ptr<OrderPolicy> order, const Limits& limits, const std::uint64_t& steps)
      : order_(std::move(order)), limits_(limits), steps_(steps) {}

  Account& account() { return account_; }
  bool empty() const { return oldest_ == nullptr; }
  // empty() must be false. The oldest request has the smallest place.
  const WaitingRequest& oldest() const { return *oldest_; }
  // How often the oldest request was overtaken; no other one was overtaken more.
  std::uint64_t most_overtaken() const { return oldest_overtaken_; }

  // The requests stay where they are until they leave. Push: it is younger than all others.
  void Push(WaitingRequest& request);
  // It leaves for a group, and overtakes all requests that came before it.
  void Admit(WaitingRequest& request);
  void Remove(WaitingRequest& request);

  // The request waited as many steps as allowed.
  bool IsDue(const WaitingRequest& request) const {
    return limits_.wait > 0 && steps_ - request.since >= limits_.wait;
  }
  // The oldest request, if it is due or was overtaken as often as allowed, or the one that the
  // order names.
  WaitingRequest* Preferred(GroupId group);
  // That one if it fits, or the first that does; null: there is none.
  WaitingRequest* Front(GroupId group, const Fits& fits);
  // The oldest that fits; null: there is none.
  WaitingRequest* FirstThatFits(const Fits& fits);

  // As of OrderPolicy.
  WaitingRequest* First() { return order_->First(); }
  WaitingRequest* Before(const WaitingRequest& request) { return order_->Before(request); }
  WaitingRequest* After(const WaitingRequest& request) { return order_->After(request); }

 private:
  void Unlink(WaitingRequest& request);
  bool OldestIsNext() const {
    return oldest_ != nullptr && (oldest_overtaken_ >= limits_.overtakes || IsDue(*oldest_));
  }

  Account account_;
  const std::unique_ptr<OrderPolicy> order_;
  const Limits limits_;
  const std::uint64_t& steps_;
  WaitingRequest* oldest_ = nullptr;
  WaitingRequest* youngest_ = nullptr;
  std::uint64_t oldest_overtaken_ = 0;  // sum of `overtaken` of all
};

}  // namespace penstock::scheduler
