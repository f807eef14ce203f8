// Says when a device has come to marks in the order of its work, without holding up the thread that
// enqueues: a thread of its own waits for one mark after another, and sleeps while there is none.
//
// Full: Add is refused; whoever adds keeps to kMostWaiting.
//
// Threading: Full, Add and WaitFor from one thread. `wait` and the callbacks run on the watch's.
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
  // Returns when the device has come to the mark, or has failed.
  using Wait = std::function<absl::Status(Mark)>;

  static constexpr std::size_t kMostWaiting = 8;

  explicit CompletionWatch(Wait wait, std::chrono::milliseconds timeout = std::chrono::seconds(30));
  // Waits for what was added.
  ~CompletionWatch();
  CompletionWatch(const CompletionWatch&) = delete;
  CompletionWatch& operator=(const CompletionWatch&) = delete;

  bool Full() const;

  // Marks ascend. `done` is called once, behind the mark.
  absl::Status Add(Mark mark, std::function<void()> done);

  // Until the mark, which was added, is passed. What `wait` said if it failed, then or before;
  // DeadlineExceeded after the timeout.
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
  std::deque<Waiting> waiting_;  // front: being waited for
  Mark passed_ = 0;
  absl::Status failure_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace penstock::shard::cuda
