// The completion queue of all Execute streams of a router. The scheduler thread polls it, so that a
// step result wakes one thread only. Its tags are Operations (common/grpc/operation.h).
//
// One thread, the owner, calls Wait. All other calls come from any thread. The owner must call
// DrainStreams at the end.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace penstock::router {

class ExecuteQueue {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  ExecuteQueue() = default;
  ~ExecuteQueue();
  ExecuteQueue(const ExecuteQueue&) = delete;
  ExecuteQueue& operator=(const ExecuteQueue&) = delete;

  // Makes the calling thread the owner.
  void Own() { owner_ = std::this_thread::get_id(); }
  bool IsOwner() const { return owner_ == std::this_thread::get_id(); }

  // Owner: waits for an event and handles it. False: the deadline came first.
  bool Wait(Deadline deadline);
  // Ends the current or the next Wait.
  void Wake();

  // Count the streams that have begun and not ended.
  void StreamBegins() { ++live_; }
  void StreamEnded() { --live_; }
  // Owner: waits until the last stream has ended. All must have been closed or aborted.
  void DrainStreams();

  grpc::CompletionQueue& completions() { return completions_; }

 private:
  grpc::CompletionQueue completions_;
  grpc::Alarm alarm_;
  std::atomic<bool> woken_{false};  // the alarm's event is in the queue
  std::atomic<int> live_{0};
  std::atomic<std::thread::id> owner_{};
};

}  // namespace penstock::router
