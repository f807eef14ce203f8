// Reports when a device has reached marks in its queue of work, without blocking the thread that
// enqueues. A thread of its own waits for one mark after another, and sleeps while there is none.
//
// Add fails when kMostWaiting marks are waiting.
//
// Threading: one thread calls Full, Add and WaitFor. `wait` and the callbacks run on the watch's
// thread.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace penstock::shard::cuda {

class CompletionWatch {
 public:
  using Mark = std::uint64_t;
  // Returns when the device has reached the mark or has failed.
  using Wait = std::function<absl::Status(Mark)>;

  static constexpr std::size_t kMostWaiting = 8;

  explicit CompletionWatch(Wait wait, std::chrono::milliseconds timeout = std::chrono::seconds(30));
  // Waits for all marks that were added.
  ~CompletionWatch();
  CompletionWatch(const CompletionWatch&) = delete;
  CompletionWatch& operator=(const CompletionWatch&) = delete;

  bool Full() const;

  // Marks ascend. `done` is called once, when the device has reached the mark.
  absl::Status Add(Mark mark, std::function<void()> done);

  // Waits until the device has reached the mark, which was added. Returns the error of `wait` if
  // that failed now or earlier, or DeadlineExceeded after the timeout.
  absl::Status WaitFor(Mark mark);

 private:
  struct Waiting {
    Mark mark;
    std::function<void()> done;
  };
  void Run();

  const Wait wait_;
  const std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::condition_variable passed_cv_;
  std::deque<Waiting> waiting_;  // the thread waits for the front
  Mark passed_ = 0;
  absl::Status failure_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace penstock::shard::cuda
