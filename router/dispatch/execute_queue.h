// Where the events of all Execute streams of a router arrive: one completion queue, polled by the
// thread that uses them, so that a step's result needs no wake-up of a further thread. Their tags
// are Operations (common/grpc/operation.h).
//
// One thread, the owner, calls Wait; Wake and the rest come from any. The owner must go on with
// Wait until no stream is live, see DrainStreams.
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

  // The calling thread is the owner from now on.
  void Own() { owner_ = std::this_thread::get_id(); }
  bool IsOwner() const { return owner_ == std::this_thread::get_id(); }

  // Owner: sleeps until something has come, and handles it. False: it was the deadline.
  bool Wait(Deadline deadline);
  // Ends a Wait, the present one or the next.
  void Wake();

  // Streams that have begun and not ended.
  void StreamBegins() { ++live_; }
  void StreamEnded() { --live_; }
  // Owner: waits until the last stream has ended. They must have been told to.
  void DrainStreams();

  grpc::CompletionQueue& completions() { return completions_; }

 private:
  grpc::CompletionQueue completions_;
  grpc::Alarm alarm_;
  std::atomic<bool> woken_{false};  // the alarm's event has not been taken yet
  std::atomic<int> live_{0};
  std::atomic<std::thread::id> owner_{};
};

}  // namespace penstock::router
