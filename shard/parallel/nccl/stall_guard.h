// Aborts collectives that do not end. A collective on a device returns at once. Its kernel may then
// wait for another rank without limit, and only an abort ends it. In a CUDA graph no library
// watches it. So the guard has a thread: after Watch() everything enqueued so far must be done
// within the timeout. Meanwhile the thread polls the communicator for errors.
//
// The thread sleeps without a timeout while there is nothing to watch. After its first report it
// watches nothing.
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
    std::chrono::milliseconds error_interval{100};  // between two calls of `find_error`
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
  // Returns true if there is nothing to watch: all is done, or a failure has been reported.
  bool Look(std::unique_lock<std::mutex>& lock);
  absl::Status Problem(const Watched& oldest);

  const Options options_;
  DeviceQueue& queue_;
  const FindError find_error_;
  const OnFailure on_failure_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Two marks are enough. When the oldest is done, the newest replaces it with its own deadline,
  // which is not earlier than the deadlines of the marks between them.
  std::optional<Watched> oldest_;
  std::optional<Watched> newest_;
  bool stopping_ = false;
  bool failed_ = false;
  std::thread thread_;  // last, because it uses the members above
};

}  // namespace penstock::shard
