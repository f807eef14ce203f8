#include "router/dispatch/group_fleet.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "common/status.h"

namespace penstock::router {
namespace {

using std::chrono::milliseconds;

// Greater than the epoch of every earlier router of the same shards.
Epoch FreshEpoch() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return Epoch(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
}

std::string NameOf(const GroupFormed& formed) {
  return "group " + std::to_string(formed.group.value());
}

}  // namespace

GroupFleet::GroupFleet(FleetOptions options, Metrics& metrics)
    : options_(std::move(options)), metrics_(metrics), lost_(options_.groups.size()) {}

GroupFleet::~GroupFleet() { Stop(); }

void GroupFleet::Start(std::function<void(const absl::Status&)> started) {
  started_ = std::move(started);
  for (std::size_t i = 0; i < options_.groups.size(); ++i) {
    keepers_.emplace_back([this, i](const std::stop_token& stop) { Keep(i, stop); });
  }
}

void GroupFleet::Stop() {
  for (std::jthread& keeper : keepers_) keeper.request_stop();
  keepers_.clear();
}

GroupFormed GroupFleet::Agreed() const {
  const std::lock_guard lock(mutex_);
  return *agreed_;
}

void GroupFleet::Serve(Attach attach) {
  const std::lock_guard lock(mutex_);
  attach_ = std::move(attach);
  for (std::unique_ptr<GroupLink>& link : std::exchange(formed_, {})) attach_(std::move(link));
}

void GroupFleet::Lost(std::unique_ptr<GroupLink> lost) {
  {
    const std::lock_guard lock(mutex_);
    lost_[lost->formed().group.value()] = std::move(lost);
  }
  news_.notify_all();
}

GroupLinkOptions GroupFleet::Fresh(std::size_t index, const std::stop_token& stop) const {
  GroupLinkOptions link = options_.groups[index];
  link.epoch = FreshEpoch();
  link.rendezvous = "penstock-" + std::to_string(::getpid()) + "-" + std::to_string(index) + "-" +
                    std::to_string(link.epoch.value());
  link.stop = stop;
  return link;
}

void GroupFleet::Keep(std::size_t index, const std::stop_token& stop) {
  milliseconds pause = options_.first_pause;
  for (bool first = true; first || options_.reattach; first = false) {
    auto link = GroupLink::Form(Fresh(index, stop), metrics_);
    const absl::Status status = link.ok() ? Offer(*std::move(link)) : link.status();
    if (stop.stop_requested()) return;
    if (first || options_.patient) CountForStart(status);
    if (status.ok()) {
      pause = options_.first_pause;
      AwaitLoss(index, stop);
    } else if (options_.reattach) {
      log::Warn("not attached: " + Message(status));
      std::unique_lock lock(mutex_);
      news_.wait_for(lock, stop, pause, [] { return false; });
      pause = std::min(2 * pause, options_.longest_pause);
    }
    if (stop.stop_requested()) return;
  }
}

void GroupFleet::AwaitLoss(std::size_t index, const std::stop_token& stop) {
  std::unique_ptr<GroupLink> lost;  // destroyed without the lock: its streams take time to end
  std::unique_lock lock(mutex_);
  news_.wait(lock, stop, [&] { return lost_[index] != nullptr; });
  lost = std::move(lost_[index]);
  lock.unlock();
}

absl::Status GroupFleet::CheckAgreement(const GroupFormed& formed) const {
  const ShardFacts& first = agreed_->facts;
  const ShardFacts& other = formed.facts;
  const std::string who = NameOf(formed);
  const std::string as = " as in " + NameOf(*agreed_);
  if (other.fingerprint != first.fingerprint) {
    return BadValue(who + ".fingerprint", other.fingerprint, first.fingerprint + as);
  }
  if (other.vocabulary != first.vocabulary) {
    return BadValue(who + ".vocabulary", std::to_string(other.vocabulary),
                    std::to_string(first.vocabulary) + as);
  }
  if (other.dtype != first.dtype) return BadValue(who + ".dtype", other.dtype, first.dtype + as);
  return absl::OkStatus();
}

absl::Status GroupFleet::Offer(std::unique_ptr<GroupLink> link) {
  const std::lock_guard lock(mutex_);
  const GroupFormed& formed = link->formed();
  if (!agreed_.has_value()) {
    agreed_ = formed;
  } else {
    PENSTOCK_RETURN_IF_ERROR(CheckAgreement(formed));
    GroupCapacity& least = agreed_->capacity;
    least.blocks = std::min(least.blocks, formed.capacity.blocks);
    least.window_blocks = std::min(least.window_blocks, formed.capacity.window_blocks);
    least.max_step_tokens = std::min(least.max_step_tokens, formed.capacity.max_step_tokens);
    least.max_candidates = std::min(least.max_candidates, formed.capacity.max_candidates);
  }
  if (attach_) {
    log::Info(NameOf(formed) + " has joined");
    attach_(std::move(link));
  } else {
    formed_.push_back(std::move(link));
  }
  return absl::OkStatus();
}

void GroupFleet::CountForStart(const absl::Status& status) {
  if (options_.patient && !status.ok()) return;
  absl::Status outcome;
  {
    const std::lock_guard lock(mutex_);
    if (first_error_.ok()) first_error_ = status;
    ++(status.ok() ? came_ : failed_);
    const std::size_t all = options_.groups.size();
    const bool over = options_.start_with_any ? came_ > 0 : came_ == all;
    const bool failed = options_.start_with_any ? failed_ == all : failed_ > 0;
    if (reported_ || (!over && !failed)) return;
    if (!over) outcome = first_error_;
    reported_ = true;
  }
  started_(outcome);
}

}  // namespace penstock::router
