#include "scheduler/placement.h"

#include <algorithm>
#include <tuple>

namespace penstock::scheduler {

std::string_view PlacementName(PlacementPolicy policy) {
  switch (policy) {
    case PlacementPolicy::kPrefixMatch:
      return "prefix-match";
    case PlacementPolicy::kLeastLoaded:
      return "least-loaded";
    case PlacementPolicy::kRoundRobin:
      return "round-robin";
  }
  return "";
}

void GroupPlacement::Up(GroupId group) { given_[group] = given_.empty() ? 0 : Least(); }

std::uint64_t GroupPlacement::Least() const {
  std::uint64_t least = UINT64_MAX;
  for (const auto& [group, tokens] : given_) least = std::min(least, tokens);
  return least;
}

std::uint64_t GroupPlacement::Backlog(GroupId group) const {
  const auto it = given_.find(group);
  return it == given_.end() ? 0 : it->second - Least();
}

void GroupPlacement::Admitted(GroupId group, std::uint64_t uncached_tokens) {
  given_[group] += uncached_tokens;
  last_ = group;
}

std::uint64_t GroupPlacement::CostOf(const GroupOffer& offer, std::uint64_t least) const {
  const auto given = given_.find(offer.group);
  switch (policy_) {
    case PlacementPolicy::kPrefixMatch:
      return offer.uncached_tokens * 1000 +
             (given == given_.end() ? 0 : given->second - least) * load_weight_permille_;
    case PlacementPolicy::kRoundRobin:
      return last_ && offer.group <= *last_ ? 1 : 0;  // then the lowest id after the last
    case PlacementPolicy::kLeastLoaded:
      break;
  }
  return 0;
}

std::optional<GroupOffer> GroupPlacement::Choose(const std::vector<GroupOffer>& offers,
                                                 bool idle_first) const {
  const bool in_turn = policy_ == PlacementPolicy::kRoundRobin;
  const std::uint64_t least = Least();
  const auto rank = [&](const GroupOffer& offer) {
    return std::make_tuple(offer.shortage.has_value(), idle_first && offer.plans_in_flight > 0,
                           CostOf(offer, least), in_turn ? 0 : offer.running,
                           in_turn ? 0 : offer.plans_in_flight, offer.group);
  };
  if (offers.empty()) return std::nullopt;
  const GroupOffer* best = &offers.front();
  auto best_rank = rank(*best);
  for (const GroupOffer& offer : offers) {
    const auto its_rank = rank(offer);
    if (!(its_rank < best_rank)) continue;
    best = &offer;
    best_rank = its_rank;
  }
  return *best;
}

}  // namespace penstock::scheduler
