// The replica group that gets the next request of the queue. Binding is late: the question is asked
// when a group is about to make a step, with the state of every group at that moment.
//
//   prefix-match  the smallest cost: prompt tokens that the group would have to compute, plus a
//                 share of its backlog. Without the backlog, all requests with one system prompt
//                 would go to one group.
//   least-loaded  the fewest running sequences
//   round-robin   one group after another
//
// The backlog of a group is the number of prompt tokens it was given since it came up, less the
// smallest such number of any group. A new group starts with backlog 0. A group that cannot take
// the request now loses to any group that can. With `idle_first` a busy group loses to an idle one.
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
  std::optional<Shortage> shortage;   // set if it cannot take the request now
  std::uint32_t plans_in_flight = 0;  // an idle group starts sooner
  std::uint64_t uncached_tokens = 0;  // of the request, to compute here
};

class GroupPlacement {
 public:
  GroupPlacement(PlacementPolicy policy, std::uint32_t load_weight_permille)
      : policy_(policy), load_weight_permille_(load_weight_permille) {}

  void Up(GroupId group);
  void Down(GroupId group) { given_.erase(group); }

  // The group that should take the request. If none can take it now, the best one with its
  // shortage. Nothing without offers. All offered groups are up.
  std::optional<GroupOffer> Choose(const std::vector<GroupOffer>& offers,
                                   bool idle_first = false) const;
  // A request was admitted to the group.
  void Admitted(GroupId group, std::uint64_t uncached_tokens);

  // Prompt tokens that the group was given, above the fewest of all groups.
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
