// Which replica group the next request of the one queue goes to. Late binding: asked only when a
// group is about to make a step, with what every group has at that moment. Least loaded wins
// (fewest running sequences, then the lowest id); a group that cannot take the request now is
// passed over.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "scheduler/shortage.h"

namespace penstock::scheduler {

struct GroupOffer {
  GroupId group;
  std::uint32_t running = 0;
  std::optional<Shortage> shortage;   // set: it cannot take the request now
  std::uint32_t plans_in_flight = 0;  // of equally loaded groups an idle one starts sooner
};

// The group that should take the request, or the least loaded one with its shortage. Nothing when
// there are no offers.
std::optional<GroupOffer> ChooseGroup(const std::vector<GroupOffer>& offers);

}  // namespace penstock::scheduler
