// The completion queue of a gRPC server's calls and the thread that runs what ends in it.
//
// gRPC aborts the process when an operation begins on a queue that was shut down and has nothing
// under way. Calls begin operations when they are told something, at least the Finish of a
// cancelled one, and are told it after the server's shutdown as well. So the queue's own thread
// shuts it down, between two events, as soon as it was closed and keeps no call, expected or begun:
// nobody is left who could begin anything.
//
// Threads: one owner; Keep and Release before Start, from then on the queue's thread.
#pragma once

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "common/grpc/operation.h"

namespace penstock::shard {

class ServedCall;

class CallQueue {
 public:
  // Must outlive its server.
  explicit CallQueue(std::unique_ptr<grpc::ServerCompletionQueue> queue);
  ~CallQueue();  // Close without grace, and Join
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  void Start();

  // After the server's shutdown, which ends what was expected and cancels what had begun. Calls
  // that have not ended when `grace` is over, and which nothing waits to be told, are given up:
  // they are told nothing more and must begin nothing.
  void Close(std::chrono::milliseconds grace);

  // After Close: waits until the queue is empty and keeps nothing.
  void Join();

  grpc::ServerCompletionQueue& completions() { return *queue_; }

  // A call from before it is offered until its last operation has ended.
  void Keep(std::shared_ptr<ServedCall> call);
  std::shared_ptr<ServedCall> Release(ServedCall* call);

 private:
  void Run();
  void OnClose(bool ok);
  void ShutDown();
  void GiveUp();

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::map<ServedCall*, std::shared_ptr<ServedCall>> calls_;
  MemberOperation<CallQueue> close_{*this, &CallQueue::OnClose};
  grpc::Alarm alarm_;  // brings close_
  bool closed_ = false;
  std::chrono::milliseconds grace_{0};
  std::thread thread_;

  // The thread's.
  bool closing_ = false;
  bool shut_down_ = false;
  gpr_timespec deadline_ = gpr_inf_future(GPR_CLOCK_MONOTONIC);
};

}  // namespace penstock::shard
