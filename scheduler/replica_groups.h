// The replica groups that are up, and the choice of the group that should run a request. A group
// appears with GroupUp and disappears with Lose; nothing else in the scheduler knows that groups
// come and go.
//
// Not synchronised; one owner, the Scheduler.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "scheduler/admission/output_lengths.h"
#include "scheduler/config.h"
#include "scheduler/group_scheduler.h"
#include "scheduler/input.h"
#include "scheduler/output.h"
#include "scheduler/placement.h"

namespace penstock::scheduler {

// The groups that a request is offered to when a group makes a step.
enum class Reach {
  kAll,
  kIdleFirst,  // all, with idle groups preferred
  // An idle group that makes a step is offered the request alone. Otherwise all groups are. For an
  // order that differs between groups (longest-prefix): with kIdleFirst each of two idle groups may
  // name a request that the other one would get.
  kOwn,
};

class ReplicaGroups {
 public:
  explicit ReplicaGroups(const Config& config)
      : config_(config), placement_(config.placement, config.placement_load_permille) {}

  bool empty() const { return groups_.empty(); }
  std::map<GroupId, GroupScheduler>& all() { return groups_; }
  const std::map<GroupId, GroupScheduler>& all() const { return groups_; }
  // Null when the group is not up.
  GroupScheduler* Find(GroupId group);
  const GroupScheduler* Find(GroupId group) const;
  std::optional<GroupId> First() const;
  // A group has nothing to compute.
  bool AnyIdle() const;

  // The group must not be up.
  void Up(const GroupUp& up);
  // The group is lost. Returns its requests that must be queued again. Does nothing when the group
  // is not up.
  std::vector<Work> Lose(const GroupLost& lost, Time now, Outputs& out);

  // Leading tokens of the request that the group's prefix cache has; 0 when it is not up.
  std::uint64_t CachedTokens(GroupId group, const Work& work) const;
  // The fewest tokens of its prompt and output that a group which fits it would compute.
  std::uint64_t UncachedTokens(const Work& work) const;
  // Whether a group that is up can ever run the request, or none is up.
  bool Fit(const Arrival& arrival) const;
  // Whether a group that is up can continue the request.
  bool Continue(const Work& work) const;
  // Why no group that is up can ever run it. nullopt if one can, or if none is up.
  std::optional<Refusal> WhyNeverFits(const Arrival& arrival) const;

  // The group that should run the request, asked for a step of group `asking`.
  const GroupOffer& BestFor(const WaitingRequest& request, const GroupScheduler& asking,
                            Reach reach);
  // The request was admitted to that group.
  void OnAdmitted(const GroupOffer& offer);
  // Something changed that an offer depends on.
  void MarkChanged() { ++changes_; }

 private:
  const std::vector<GroupOffer>& OffersFor(const Work& work, const GroupScheduler& asking,
                                           Reach reach);
  void AddOffer(const GroupScheduler& group, const Work& work);

  const Config config_;
  OutputLengths lengths_;
  std::map<GroupId, GroupScheduler> groups_;
  GroupPlacement placement_;
  std::vector<GroupOffer> offers_;  // of the last OffersFor

  // The last answer of BestFor. Every group asks for the same front of the queue, so the answer is
  // kept until something changes: otherwise 64 groups would compare 64 groups each.
  std::uint64_t changes_ = 0;
  GroupOffer best_;
  std::uint64_t best_for_ = 0;  // WaitingRequest::number
  std::uint64_t best_at_ = 0;   // `changes_` at that time
};

}  // namespace penstock::scheduler
