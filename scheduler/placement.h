// Which replica group the next request of the one queue goes to. Late binding: asked only when a
// group is about to make a step, with what every group has at that moment.
//
//   prefix-match  smallest cost: prompt tokens that the group would have to compute, plus a share
//                 of its backlog. Match alone would send everybody who shares a
//                 system prompt to one group.
//   least-loaded  fewest running sequences
//   round-robin   one after the other
//
// The backlog of a group is how many prompt tokens it was given to compute beyond the group that
// was given fewest, since it is up (a new group begins level with that one). A group that cannot
// take the request now is passed over; asked for idle ones first, so is one that has something to
// do, as long as another has nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "scheduler/admission/shortage.h"
#include "scheduler/config.h"

namespace penstock::scheduler {

std::string_view PlacementName(PlacementPolicy policy);

struct GroupOffer {
  GroupId group;
  std::uint32_t running = 0;
  std::optional<Shortage> shortage;   // set: it cannot take the request now
  std::uint32_t plans_in_flight = 0;  // of equally good groups an idle one starts sooner
  std::uint64_t uncached_tokens = 0;  // of the request, to compute here
};

class Placement {
 public:
  Placement(PlacementPolicy policy, std::uint32_t load_weight_permille)
      : policy_(policy), load_weight_permille_(load_weight_permille) {}

  void Up(GroupId group);
  void Down(GroupId group) { given_.erase(group); }

  // The group that should take the request, or the best one with its shortage. Nothing when there
  // are no offers. All groups offered are up.
  std::optional<GroupOffer> Choose(const std::vector<GroupOffer>& offers,
                                   bool idle_first = false) const;
  // The request goes there.
  void Admitted(GroupId group, std::uint64_t uncached_tokens);

  // Prompt tokens given to the group beyond the least.
  std::uint64_t Backlog(GroupId group) const;

 private:
  std::uint64_t Least() const;
  std::uint64_t CostOf(const GroupOffer& offer, std::uint64_t least) const;

  const PlacementPolicy policy_;
  const std::uint32_t load_weight_permille_;
  std::map<GroupId, std::uint64_t> given_;  // prompt tokens to compute
  std::optional<GroupId> last_;
};

}  // namespace penstock::scheduler
