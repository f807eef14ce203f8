#include "router/dispatch/plans_in_flight.h"

#include <algorithm>
#include <utility>

#include "common/socket_names.h"

namespace penstock::router {
namespace {

std::string NameOfRank(std::size_t rank) {
  return ShardName(std::nullopt, static_cast<std::int64_t>(rank));
}

std::string For(StepId step) { return " for step " + std::to_string(step.value()); }

bool HasValue(const std::optional<std::uint64_t>& digest) { return digest.has_value(); }

}  // namespace

void PlansInFlight::Add(StepId step, Time sent) {
  Plan& plan = plans_[step];
  plan.sent = sent;
  plan.digests.resize(ranks_);
}

std::optional<std::string> PlansInFlight::Answer(std::uint32_t rank, StepResult result) {
  const auto found = plans_.find(result.step);
  if (result.epoch != epoch_ || found == plans_.end() || found->second.digests[rank].has_value()) {
    return NameOfRank(rank) + " sent a result" + For(result.step) + " that was not asked for";
  }
  auto& digests = found->second.digests;
  digests[rank] = result.digest;
  for (std::size_t other = 0; other < digests.size(); ++other) {
    if (digests[other].value_or(result.digest) == result.digest) continue;
    return NameOfRank(rank) + " and " + NameOfRank(other) + " disagree" + For(result.step) +
           ": their digests differ";
  }
  if (rank == 0) found->second.result = std::move(result);
  return std::nullopt;
}

std::optional<StepResult> PlansInFlight::TakeReady() {
  std::optional<StepResult> ready;
  while (!plans_.empty() && !ready) {
    Plan& oldest = plans_.begin()->second;
    ready = std::exchange(oldest.result, std::nullopt);
    if (!std::ranges::all_of(oldest.digests, HasValue)) break;
    plans_.erase(plans_.begin());
  }
  return ready;
}

std::uint64_t PlansInFlight::without_result() const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      plans_, [](const auto& plan) { return !plan.second.digests[0].has_value(); }));
}

std::optional<Time> PlansInFlight::oldest() const {
  if (plans_.empty()) return std::nullopt;
  return plans_.begin()->second.sent;
}

std::string PlansInFlight::DescribeOldest() const {
  const auto& [step, plan] = *plans_.begin();
  const auto missing = std::ranges::find_if_not(plan.digests, HasValue);
  const auto rank =
      std::min<std::size_t>(static_cast<std::size_t>(missing - plan.digests.begin()), ranks_ - 1);
  return NameOfRank(rank) + " has not answered step " + std::to_string(step.value());
}

}  // namespace penstock::router
