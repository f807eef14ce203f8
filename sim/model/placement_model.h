// The group that gets a request (docs/scheduling-admission.md, "Placement").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "scheduler/admission/shortage.h"
#include "scheduler/config.h"

namespace penstock::sim {

// What a group has for a request.
struct GroupOffer {
  GroupId group;
  std::optional<scheduler::Shortage> shortage;
  std::uint32_t running = 0;
  std::size_t plans_in_flight = 0;
  std::uint64_t uncached = 0;  // tokens that it would compute
};

class PlacementModel {
 public:
  explicit PlacementModel(const scheduler::Config& config) : config_(config) {}

  void Up(GroupId group);
  void Down(GroupId group) { given_.erase(group); }
  void Admitted(GroupId group, std::uint64_t uncached);
  // The best of at least one offer.
  GroupOffer Best(const std::vector<GroupOffer>& offers, bool idle_first) const;

 private:
  bool IsBetter(const GroupOffer& a, const GroupOffer& b, bool idle_first) const;
  std::uint64_t Fewest() const;
  std::uint64_t Cost(const GroupOffer& offer) const;

  const scheduler::Config config_;
  std::map<GroupId, std::uint64_t> given_;  // tokens to compute, since it came up
  std::optional<GroupId> last_;
};

}  // namespace penstock::sim
