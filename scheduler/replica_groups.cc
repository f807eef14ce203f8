#include "scheduler/replica_groups.h"

#include <algorithm>

namespace penstock::scheduler {

GroupScheduler* ReplicaGroups::Find(GroupId group) {
  const auto it = groups_.find(group);
  return it == groups_.end() ? nullptr : &it->second;
}

const GroupScheduler* ReplicaGroups::Find(GroupId group) const {
  const auto it = groups_.find(group);
  return it == groups_.end() ? nullptr : &it->second;
}

std::optional<GroupId> ReplicaGroups::First() const {
  if (groups_.empty()) return std::nullopt;
  return groups_.begin()->first;
}

bool ReplicaGroups::AnyIdle() const {
  return std::ranges::any_of(groups_,
                             [](const auto& entry) { return entry.second.plans_in_flight() == 0; });
}

void ReplicaGroups::Up(const GroupUp& up) {
  groups_.try_emplace(up.group, config_, up, lengths_);
  placement_.Up(up.group);
}

std::vector<Work> ReplicaGroups::Lose(const GroupLost& lost, Time now, Outputs& out) {
  const auto it = groups_.find(lost.group);
  if (it == groups_.end()) return {};
  it->second.Lose(lost, now, out);
  std::vector<Work> preempted = it->second.TakePreempted();
  groups_.erase(it);
  placement_.Down(lost.group);
  return preempted;
}

std::uint64_t ReplicaGroups::CachedTokens(GroupId group, const Work& work) const {
  const GroupScheduler* found = Find(group);
  return found == nullptr ? 0 : found->admission().CachedTokens(work);
}

std::uint64_t ReplicaGroups::UncachedTokens(const Work& work) const {
  const std::uint64_t all = work.request.prompt.size() + work.generated.size();
  std::uint64_t most = 0;
  for (const auto& [id, group] : groups_) {
    if (group.Fits(work))
      most = std::max<std::uint64_t>(most, group.admission().CachedTokens(work));
  }
  return all - most;
}

bool ReplicaGroups::Fit(const Arrival& arrival) const {
  return groups_.empty() || std::ranges::any_of(groups_, [&arrival](const auto& entry) {
           return entry.second.admission().Fits(arrival);
         });
}

bool ReplicaGroups::Continue(const Work& work) const {
  return std::ranges::any_of(groups_,
                             [&work](const auto& entry) { return entry.second.Fits(work); });
}

std::optional<Refusal> ReplicaGroups::WhyNeverFits(const Arrival& arrival) const {
  if (Fit(arrival)) return std::nullopt;
  return groups_.rbegin()->second.admission().WhyNeverFits(arrival);
}

const GroupOffer& ReplicaGroups::BestFor(const WaitingRequest& request,
                                         const GroupScheduler& asking, Reach reach) {
  const bool known = reach != Reach::kOwn && best_for_ == request.number && best_at_ == changes_;
  if (known) return best_;
  best_ = *placement_.Choose(OffersFor(request, asking, reach), reach != Reach::kAll);
  best_for_ = request.number;
  best_at_ = changes_;
  return best_;
}

const std::vector<GroupOffer>& ReplicaGroups::OffersFor(const Work& work,
                                                        const GroupScheduler& asking, Reach reach) {
  offers_.clear();
  if (reach == Reach::kOwn && asking.plans_in_flight() == 0) AddOffer(asking, work);
  if (!offers_.empty() && !offers_.front().shortage) return offers_;
  offers_.clear();
  for (const auto& [id, group] : groups_) AddOffer(group, work);
  return offers_;
}

void ReplicaGroups::AddOffer(const GroupScheduler& group, const Work& work) {
  const GroupAdmission& admission = group.admission();
  if (!group.Fits(work)) return;
  const std::uint64_t tokens = work.request.prompt.size() + work.generated.size();
  offers_.push_back({group.id(), group.running(), admission.Check(work), group.plans_in_flight(),
                     tokens - admission.CachedTokens(work)});
}

void ReplicaGroups::OnAdmitted(const GroupOffer& offer) {
  placement_.Admitted(offer.group, offer.uncached_tokens);
}

}  // namespace penstock::scheduler
