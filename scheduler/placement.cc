#include "scheduler/placement.h"

#include <algorithm>
#include <tuple>

namespace penstock::scheduler {

std::optional<GroupOffer> ChooseGroup(const std::vector<GroupOffer>& offers) {
  const auto rank = [](const GroupOffer& offer) {
    return std::make_tuple(offer.shortage.has_value(), offer.running, offer.plans_in_flight,
                           offer.group);
  };
  const auto best =
      std::min_element(offers.begin(), offers.end(),
                       [&rank](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (best == offers.end()) return std::nullopt;
  return *best;
}

}  // namespace penstock::scheduler
