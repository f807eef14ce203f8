// Ends collectives that do not come to an end. A collective on a device returns at once and may
// then wait for ever for another rank, inside a kernel that only an abort ends; inside a CUDA graph
// no library watches it at all. So a thread of its own watches: after Watch() everything enqueued
// so far must be done within the timeout, and meanwhile the communicator is asked for errors.
//
// The thread sleeps without a timeout while nothing is being watched. Once it has reported it
// watches no more.
//
// Threading: Watch from the model thread. The callbacks run on the guard's thread.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "shard/parallel/device_queue.h"

namespace penstock::shard {

class StallGuard {
 public:
  struct Options {
    std::chrono::milliseconds timeout{30'000};
    std::chrono::milliseconds error_interval{100};  // how often `find_error` is asked
  };
  using FindError = std::function<absl::Status()>;
  using OnFailure = std::function<void(absl::Status)>;

  // `queue` outlives the guard.
  StallGuard(Options options, DeviceQueue& queue, FindError find_error, OnFailure on_failure);
  ~StallGuard();
  StallGuard(const StallGuard&) = delete;
  StallGuard& operator=(const StallGuard&) = delete;

  absl::Status Watch();

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    DeviceQueue::Mark mark;
    Clock::time_point deadline;
  };

  void Run();
  // True if all is done or the failure has been reported: there is nothing left to watch.
  bool Look(std::unique_lock<std::mutex>& lock);
  absl::Status Problem(const Watched& oldest);

  const Options options_;
  DeviceQueue& queue_;
  const FindError find_error_;
  const OnFailure on_failure_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Two marks are enough: when the oldest is done, the newest takes its place, with its own
  // deadline, which is no earlier than any between the two.
  std::optional<Watched> oldest_;
  std::optional<Watched> newest_;
  bool stopping_ = false;
  bool failed_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace penstock::shard
