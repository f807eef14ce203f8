#include "launcher/replica_group.h"

#include <algorithm>

#include "launcher/duration_text.h"

namespace penstock::launcher {

void ReplicaGroup::Fail(const std::string& why) {
  if (!may_fail()) return;
  state_ = State::kEnding;
  due_.reset();
  why_ = why.starts_with(name_ + ": ") ? why.substr(name_.size() + 2) : why;
  on_news_(GroupNews::kTrouble, name_ + " is down: " + why_);
  for (const SupervisedChild& shard : shards_) {
    if (shard.alive()) shard.Kill();
  }
}

void ReplicaGroup::Advance(bool may_restart) {
  const bool any_alive = std::any_of(shards_.begin(), shards_.end(),
                                     [](const SupervisedChild& shard) { return shard.alive(); });
  if (state_ != State::kEnding || any_alive) return;
  state_ = State::kGivenUp;
  if (!may_restart) return;
  const std::optional<std::chrono::nanoseconds> pause = policy_.OnFailure(Clock::now());
  if (!pause.has_value()) {
    return on_news_(GroupNews::kTrouble, name_ + " failed too often and stays down");
  }
  state_ = State::kWaiting;
  due_ = Clock::now() + *pause;
  on_news_(GroupNews::kTrouble, name_ + " starts again in " + Seconds(*pause));
}

void ReplicaGroup::OnTime(Clock::time_point now) {
  if (!due_.has_value() || now < *due_) return;
  due_.reset();
  if (state_ == State::kLoading) {
    Fail("not ready: no progress within --startup-timeout");
  } else if (state_ == State::kWaiting) {
    Start();
  }
}

void ReplicaGroup::OnProgress() {
  if (state_ == State::kLoading) ResetLoadingDeadline();
}

void ReplicaGroup::OnRankReady() {
  if (state_ != State::kLoading) return;
  const bool all_ready = std::all_of(shards_.begin(), shards_.end(),
                                     [](const SupervisedChild& shard) { return shard.ready(); });
  if (!all_ready) return ResetLoadingDeadline();
  state_ = State::kUp;
  due_.reset();
  on_news_(GroupNews::kProgress, name_ + " is loaded again and joins the router");
}

void ReplicaGroup::Start() {
  state_ = State::kLoading;
  ResetLoadingDeadline();
  on_news_(GroupNews::kProgress, name_ + " is being loaded again");
  for (SupervisedChild& shard : shards_) {
    const absl::Status started = shard.Start();
    if (!started.ok()) return Fail(std::string(started.message()));
  }
}

void ReplicaGroup::ResetLoadingDeadline() {
  due_.reset();
  if (startup_.count() > 0) due_ = Clock::now() + startup_;
}

}  // namespace penstock::launcher
