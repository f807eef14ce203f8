#include "shard/backend/cuda/completion_watch.h"

#include <string>
#include <utility>

namespace penstock::shard::cuda {

CompletionWatch::CompletionWatch(Wait wait, std::chrono::milliseconds timeout)
    : wait_(std::move(wait)), timeout_(timeout), thread_([this] { Run(); }) {}

CompletionWatch::~CompletionWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  added_.notify_one();
  thread_.join();
}

bool CompletionWatch::Full() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() >= kMostWaiting;
}

absl::Status CompletionWatch::Add(Mark mark, std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostWaiting) {
      return absl::ResourceExhaustedError("too many marks are waited for");
    }
    waiting_.push_back({mark, std::move(done)});
  }
  added_.notify_one();
  return absl::OkStatus();
}

absl::Status CompletionWatch::WaitFor(Mark mark) {
  std::unique_lock lock(mutex_);
  const bool passed = passed_cv_.wait_for(
      lock, timeout_, [this, mark] { return passed_ >= mark || !failure_.ok(); });
  if (!failure_.ok()) return failure_;
  if (passed) return absl::OkStatus();
  return absl::DeadlineExceededError("the device has not finished a step within " +
                                     std::to_string(timeout_.count()) + " ms");
}

void CompletionWatch::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    added_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Mark mark = waiting_.front().mark;
    lock.unlock();
    absl::Status status = wait_(mark);
    lock.lock();
    passed_ = mark;
    if (failure_.ok()) failure_ = std::move(status);
    const std::function<void()> done = std::move(waiting_.front().done);
    waiting_.pop_front();
    passed_cv_.notify_all();
    lock.unlock();
    if (done) done();
    lock.lock();
  }
}

}  // namespace penstock::shard::cuda
