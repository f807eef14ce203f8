// The state of one replica group of a server that has several. Decides when its shards are killed,
// when they start again, and when the group is given up.
//
//   kUp --Fail--> kEnding --all ranks ended--> kWaiting --due--> kLoading --all ready--> kUp
//                    |                                               |
//                    +--> kGivenUp (too many failures, or the        +--Fail, or no progress-->
//                         server stops)                                              kEnding
//
// Used by the supervisor's thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "launcher/restart_policy.h"
#include "launcher/supervised_child.h"

namespace penstock::launcher {

enum class GroupNews { kTrouble, kProgress };

class ReplicaGroup {
 public:
  using Clock = std::chrono::steady_clock;
  // Receives one line when the group fails, is scheduled to start, loads, or is loaded again.
  using OnNews = std::function<void(GroupNews kind, std::string_view news)>;

  // `shards` are the ranks of the group and must outlive it. `startup` is the longest time without
  // progress while they load; 0 = no limit.
  ReplicaGroup(std::size_t number, std::span<SupervisedChild> shards, const RestartLimits& limits,
               std::chrono::nanoseconds startup, OnNews on_news)
      : name_("group " + std::to_string(number)),
        shards_(shards),
        policy_(limits),
        startup_(startup),
        on_news_(std::move(on_news)) {}

  // Kills the ranks at once: they cannot continue without each other. Ignored while it is down.
  // `why` may begin with the group's name.
  void Fail(const std::string& why);
  // Once all ranks of a failed group have ended: schedules the next start. When `may_restart` is
  // false or the group failed too often, it is given up.
  void Advance(bool may_restart);
  // Starts a group whose pause is over, and fails one that makes no progress while it loads.
  void OnTime(Clock::time_point now);
  void OnProgress();
  void OnRankReady();
  // Nothing is started from here on: the server stops.
  void CancelRestart() { due_.reset(); }

  bool may_fail() const { return state_ == State::kUp || state_ == State::kLoading; }
  bool given_up() const { return state_ == State::kGivenUp; }
  const std::string& why() const { return why_; }  // of the last failure
  const std::optional<Clock::time_point>& due() const { return due_; }

 private:
  enum class State { kUp, kEnding, kWaiting, kLoading, kGivenUp };

  void Start();
  void ResetLoadingDeadline();

  std::string name_;
  std::span<SupervisedChild> shards_;
  RestartPolicy policy_;
  std::chrono::nanoseconds startup_;
  OnNews on_news_;
  State state_ = State::kUp;
  std::optional<Clock::time_point> due_;  // of the next start, or the limit of loading
  std::string why_;
};

}  // namespace penstock::launcher
