#include "shard/parallel/nccl/stall_guard.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/status.h"

namespace penstock::shard {

StallGuard::StallGuard(Options options, DeviceQueue& queue, FindError find_error,
                       OnFailure on_failure)
    : options_(options),
      queue_(queue),
      find_error_(std::move(find_error)),
      on_failure_(std::move(on_failure)),
      thread_([this] { Run(); }) {}

StallGuard::~StallGuard() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

absl::Status StallGuard::Watch() {
  PENSTOCK_ASSIGN_OR_RETURN(const DeviceQueue::Mark mark, queue_.Record());
  const Watched watched{mark, Clock::now() + options_.timeout};
  const std::lock_guard lock(mutex_);
  newest_ = watched;
  if (!oldest_.has_value()) {
    oldest_ = watched;
    changed_.notify_all();
  }
  return absl::OkStatus();
}

void StallGuard::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || (oldest_.has_value() && !failed_); });
    if (stopping_) return;
    if (Look(lock)) continue;
    const auto next = std::min(oldest_->deadline, Clock::now() + options_.error_interval);
    changed_.wait_until(lock, next, [this] { return stopping_; });
  }
}

absl::Status StallGuard::Problem(const Watched& oldest) {
  PENSTOCK_RETURN_IF_ERROR(find_error_());
  if (Clock::now() < oldest.deadline) return absl::OkStatus();
  return absl::DeadlineExceededError("a collective has not ended within " +
                                     std::to_string(options_.timeout.count()) +
                                     " ms: another rank is stuck or gone");
}

bool StallGuard::Look(std::unique_lock<std::mutex>& lock) {
  const Watched oldest = *oldest_;
  lock.unlock();
  const absl::StatusOr<bool> done = queue_.Done(oldest.mark);
  absl::Status problem = done.status();
  if (done.ok() && !*done) problem = Problem(oldest);
  const bool failed = !problem.ok();
  if (failed) on_failure_(std::move(problem));
  lock.lock();
  if (failed) {
    failed_ = true;
    return true;
  }
  if (!*done) return false;
  if (newest_->mark == oldest.mark) {
    oldest_.reset();
  } else {
    oldest_ = newest_;
  }
  return true;
}

}  // namespace penstock::shard
