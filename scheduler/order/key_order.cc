#include "scheduler/order/key_order.h"

#include <iterator>

#include "common/check.h"

namespace penstock::scheduler {
namespace {

std::int64_t KeyFor(Order order, const Arrival& arrival) {
  if (order == Order::kPriority) return -std::int64_t{arrival.priority};
  if (order != Order::kShortestPredicted) return 0;
  // Without a forecast: the longest output that it may have.
  return arrival.predicted_tokens > 0 ? arrival.predicted_tokens : arrival.max_new_tokens;
}

}  // namespace

std::unique_ptr<OrderPolicy> MakeKeyOrder(Order order) {
  PENSTOCK_CHECK(order != Order::kLongestPrefix && order != Order::kLearned,
                 "their ranks depend on the groups");
  return std::make_unique<KeyOrder>(
      [order](const Work& work) { return KeyFor(order, work.request); });
}

void KeyOrder::Add(WaitingRequest& request) {
  request.key = key_of_(request);
  Place place = PlaceOf(request);
  place.request = &request;
  PENSTOCK_CHECK(places_.insert(place).second, "a request waits once");
}

void KeyOrder::Remove(WaitingRequest& request) {
  PENSTOCK_CHECK(places_.erase(PlaceOf(request)) == 1, "only a waiting request is removed");
}

WaitingRequest* KeyOrder::Next(GroupId) { return First(); }

WaitingRequest* KeyOrder::First() { return places_.empty() ? nullptr : places_.begin()->request; }

WaitingRequest* KeyOrder::Before(const WaitingRequest& request) {
  const auto it = places_.lower_bound(PlaceOf(request));
  return it == places_.begin() ? nullptr : std::prev(it)->request;
}

WaitingRequest* KeyOrder::After(const WaitingRequest& request) {
  const auto it = places_.upper_bound(PlaceOf(request));
  return it == places_.end() ? nullptr : it->request;
}

}  // namespace penstock::scheduler
