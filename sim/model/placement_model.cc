#include "sim/model/placement_model.h"

#include <algorithm>

namespace penstock::sim {

using scheduler::PlacementPolicy;

std::uint64_t PlacementModel::Fewest() const {
  std::uint64_t fewest = UINT64_MAX;
  for (const auto& [group, tokens] : given_) fewest = std::min(fewest, tokens);
  return fewest;
}

// A new group has no backlog.
void PlacementModel::Up(GroupId group) {
  const std::uint64_t fewest = given_.empty() ? 0 : Fewest();
  given_[group] = fewest;
}

void PlacementModel::Admitted(GroupId group, std::uint64_t uncached) {
  given_[group] += uncached;
  last_ = group;
}

std::uint64_t PlacementModel::Cost(const GroupOffer& offer) const {
  const std::uint64_t backlog = given_.at(offer.group) - Fewest();
  return offer.uncached * 1000 + backlog * config_.placement_load_permille;
}

bool PlacementModel::IsBetter(const GroupOffer& a, const GroupOffer& b, bool idle_first) const {
  if (a.shortage.has_value() != b.shortage.has_value()) return !a.shortage;
  if (idle_first && (a.plans_in_flight == 0) != (b.plans_in_flight == 0)) {
    return a.plans_in_flight == 0;
  }
  if (config_.placement == PlacementPolicy::kRoundRobin) {
    const auto turn = [this](GroupId group) { return last_ && group <= *last_; };
    if (turn(a.group) != turn(b.group)) return !turn(a.group);
    return a.group < b.group;
  }
  const bool by_match = config_.placement == PlacementPolicy::kPrefixMatch;
  if (by_match && Cost(a) != Cost(b)) return Cost(a) < Cost(b);
  if (a.running != b.running) return a.running < b.running;
  if (a.plans_in_flight != b.plans_in_flight) return a.plans_in_flight < b.plans_in_flight;
  return a.group < b.group;
}

GroupOffer PlacementModel::Best(const std::vector<GroupOffer>& offers, bool idle_first) const {
  GroupOffer best = offers.front();
  for (const GroupOffer& offer : offers) {
    if (IsBetter(offer, best, idle_first)) best = offer;
  }
  return best;
}

}  // namespace penstock::sim
