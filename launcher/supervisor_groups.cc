// The part of the supervisor that keeps several replica groups up.
#include <algorithm>
#include <utility>

#include "common/exit_codes.h"
#include "launcher/supervisor.h"

namespace penstock::launcher {
namespace {

std::string Seconds(std::chrono::nanoseconds duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) +
         " ms";
}

}  // namespace

void Supervisor::Child::Renew() {
  process.reset();
  exit.reset();
  lines = LineBuffer();
  notices = LineBuffer();
  progress = ProgressNotice();
  failure.clear();
  ready = false;
  stopped_until.reset();
}

bool Supervisor::GroupsRestart() const {
  return groups_.size() > 1 && (phase_ == Phase::kServing || phase_ == Phase::kDraining);
}

std::string Supervisor::GroupName(std::size_t group) { return "group " + std::to_string(group); }

// Its ranks cannot go on without each other, and one of them may be stopped or stuck: no grace.
void Supervisor::FailGroup(std::size_t index, const std::string& why) {
  Group& group = groups_[index];
  if (group.state != GroupState::kUp && group.state != GroupState::kLoading) return;
  group.state = GroupState::kEnding;
  group.due.reset();
  group.why = why;
  observer_.OnGroup(GroupName(index) + " is down: " + why);
  for (Child& child : children_) {
    if (InGroup(child, index) && child.alive()) child.process->Kill();
  }
}

// After the ends of processes were collected: a group whose rank has died is told of by its name.
void Supervisor::TakeReports() {
  for (const GroupLostNotice& lost : std::exchange(reported_lost_, {})) {
    if (GroupsRestart()) FailGroup(lost.group, lost.reason);
  }
}

// What follows the end of a group's last process.
void Supervisor::AdvanceGroups() {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    const bool any_alive = std::any_of(children_.begin(), children_.end(), [&](const Child& child) {
      return InGroup(child, i) && child.alive();
    });
    if (group.state != GroupState::kEnding || any_alive) continue;
    ScheduleRestart(i);
  }
}

void Supervisor::ScheduleRestart(std::size_t index) {
  Group& group = groups_[index];
  group.state = GroupState::kGivenUp;
  if (phase_ != Phase::kServing) return;  // nothing is started while the server stops
  const std::optional<std::chrono::nanoseconds> pause = group.policy.OnFailure(Clock::now());
  if (pause.has_value()) {
    group.state = GroupState::kWaiting;
    group.due = Clock::now() + *pause;
    return observer_.OnGroup(GroupName(index) + " is started again in " + Seconds(*pause));
  }
  observer_.OnGroup(GroupName(index) + " failed too often and stays down");
  const bool none_left = std::all_of(groups_.begin(), groups_.end(), [](const Group& other) {
    return other.state == GroupState::kGivenUp;
  });
  if (none_left) Fail(kExitShardLost, "no replica group is left: " + group.why, nullptr);
}

void Supervisor::OnGroupsDue() {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    if (!group.due.has_value() || Clock::now() < *group.due) continue;
    group.due.reset();
    if (group.state == GroupState::kLoading) {
      FailGroup(i, "not ready: no progress within --startup-timeout");
    } else if (group.state == GroupState::kWaiting) {
      StartGroup(i);
    }
  }
}

void Supervisor::StartGroup(std::size_t index) {
  groups_[index].state = GroupState::kLoading;
  SetGroupDeadline(index);
  for (Child& child : children_) {
    if (!InGroup(child, index)) continue;
    child.Renew();
    const absl::Status started = Spawn(child);
    if (!started.ok()) return FailGroup(index, std::string(started.message()));
  }
}

void Supervisor::SetGroupDeadline(std::size_t index) {
  Group& group = groups_[index];
  group.due.reset();
  if (timeouts_.startup.count() > 0) group.due = Clock::now() + timeouts_.startup;
}

void Supervisor::OnGroupMemberReady(std::size_t index) {
  Group& group = groups_[index];
  const bool all_ready = std::all_of(children_.begin(), children_.end(), [&](const Child& child) {
    return !InGroup(child, index) || child.ready;
  });
  if (group.state != GroupState::kLoading) return;
  if (!all_ready) return SetGroupDeadline(index);
  group.state = GroupState::kUp;
  group.due.reset();
  observer_.OnGroup(GroupName(index) + " is loaded again");
}

}  // namespace penstock::launcher
