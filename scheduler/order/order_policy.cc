#include "scheduler/order/order_policy.h"

#include <algorithm>
#include <array>

namespace penstock::scheduler {

namespace {

// By the values of Order.
constexpr std::array<std::string_view, kOrders> kNames{
    "fcfs", "longest-prefix", "priority", "shortest-predicted", "learned",
};

}  // namespace

std::string_view OrderName(Order order) { return kNames[static_cast<std::size_t>(order)]; }

std::optional<Order> FindOrder(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Order>(found - kNames.begin());
}

std::uint64_t MaxWaitSteps(const Config& config, const GroupCapacity& capacity) {
  const std::uint64_t before =
      std::uint64_t{capacity.slots} + config.max_waiting_requests + MaxOvertakes(config);
  return before * (std::uint64_t{capacity.max_sequence_length} + config.pipeline_depth);
}

std::string DescribeOrder(const Config& config, const GroupCapacity& capacity) {
  std::string text = "order " + std::string(OrderName(config.order)) + ": ";
  const std::uint32_t overtakes = MaxOvertakes(config);
  text += overtakes == 0
              ? "no request is overtaken"
              : "no request is overtaken more than " + std::to_string(overtakes) + " times";
  if (const std::uint32_t most = MaxWait(config); most > 0) {
    text += ", or after it waited " + std::to_string(most) + " steps";
  }
  if (config.admission == AdmissionMode::kGuaranteed && config.batching == Batching::kContinuous) {
    text += ", a request waits at most " + std::to_string(MaxWaitSteps(config, capacity)) +
            " steps of its group";
  }
  return text;
}

std::uint32_t MaxWait(const Config& config) {
  return config.order == Order::kLearned ? config.starvation_steps : 0;
}

std::uint32_t MaxOvertakes(const Config& config) {
  if (config.order == Order::kFcfs) return 0;
  return config.max_overtakes > 0 ? config.max_overtakes : config.max_waiting_requests;
}

}  // namespace penstock::scheduler
