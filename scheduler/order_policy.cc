#include "scheduler/order_policy.h"

namespace penstock::scheduler {

std::string_view OrderName(Order order) {
  switch (order) {
    case Order::kFcfs:
      return "fcfs";
    case Order::kLongestPrefix:
      return "longest-prefix";
    case Order::kPriority:
      return "priority";
    case Order::kShortestPredicted:
      break;
  }
  return "shortest-predicted";
}

std::uint32_t MaxOvertakes(const Config& config) {
  if (config.order == Order::kFcfs) return 0;
  return config.max_overtakes > 0 ? config.max_overtakes : config.max_waiting_requests;
}

}  // namespace penstock::scheduler
