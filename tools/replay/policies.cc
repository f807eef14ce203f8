#include "tools/replay/policies.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "scheduler/order/order_policy.h"
#include "scheduler/placement.h"

namespace penstock::replay {
namespace {

using options::Values;
using scheduler::Config;

constexpr std::pair<std::string_view, std::uint32_t Config::*> kCounts[] = {
    {"max-step-tokens", &Config::max_step_tokens},
    {"max-batch-prefill-tokens", &Config::max_batch_prefill_tokens},
    {"max-batch-total-tokens", &Config::max_batch_total_tokens},
    {"max-batch-size", &Config::max_batch_size},
    {"max-waiting-requests", &Config::max_waiting_requests},
    {"max-overtakes", &Config::max_overtakes},
    {"starvation-steps", &Config::starvation_steps},
    {"starvation-quantum", &Config::starvation_quantum},
};

std::optional<Duration> FindDuration(const Values& values, std::string_view name) {
  if (!values.HasValue(name)) return std::nullopt;
  return values.GetDuration(name);
}

}  // namespace

void SetPolicies(const Values& values, Config& config) {
  using namespace scheduler;
  for (const auto& [name, field] : kCounts) {
    if (const auto count = values.FindInt(name)) {
      config.*field = static_cast<std::uint32_t>(*count);
    }
  }
  if (const auto target = values.FindInt("target-inter-token-ms")) {
    config.target_inter_token = std::chrono::milliseconds(*target);
  }
  if (values.HasValue("placement-load-weight")) {
    config.placement_load_permille =
        static_cast<std::uint32_t>(values.GetDouble("placement-load-weight") * 1000);
  }
  if (values.HasValue("prefill")) {
    config.prefill = values.GetString("prefill") == "whole" ? Prefill::kWhole : Prefill::kChunked;
  }
  for (const auto admission :
       {AdmissionMode::kGuaranteed, AdmissionMode::kOptimistic, AdmissionMode::kMixed}) {
    if (AdmissionName(admission) == values.GetString("admission")) config.admission = admission;
  }
  if (const auto order = FindOrder(values.GetString("order"))) config.order = *order;
  for (const auto policy : {PlacementPolicy::kPrefixMatch, PlacementPolicy::kLeastLoaded,
                            PlacementPolicy::kRoundRobin}) {
    if (PlacementName(policy) == values.GetString("placement")) config.placement = policy;
  }
}

sim::Objective ReadObjective(const Values& values) {
  return {FindDuration(values, "slo-ttft"), FindDuration(values, "slo-gap"),
          FindDuration(values, "slo-normalised")};
}

}  // namespace penstock::replay
