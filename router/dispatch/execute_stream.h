// The client side of one rank's Execute stream, on an ExecuteQueue. Internal to dispatch/.
//
// Threads: the queue's owner sends and handles the ends of operations. Abort and Close come from
// any thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "common/grpc/operation.h"
#include "penstock/v1/shard.grpc.pb.h"
#include "router/dispatch/execute_queue.h"
#include "router/dispatch/shard_client.h"

namespace penstock::router {

class ShardClient::Stream final {
 public:
  Stream(v1::Shard::Stub& stub, std::uint32_t rank, ExecuteListener* listener,
         std::shared_ptr<ExecuteQueue> queue);
  // Cancels the call if it still runs, and waits for its end.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void Start();
  void Send(const StepPlan& plan);
  void CheckAlive(std::chrono::milliseconds within);
  // Closes the sending side, so that the shard ends the call. Cancels a call that has not ended
  // after `grace`. Waits for the end; on the owner's thread by handling events.
  void Close(std::chrono::milliseconds grace);
  void Abort();

 private:
  using Step = MemberOperation<Stream>;

  void OnStarted(bool ok);
  void OnReadDone(bool ok);
  void OnWriteDone(bool ok);
  void OnFinished(bool ok);
  void OnLifeChecked(bool ok);

  void Write(const v1::StepPlan& plan);  // with mutex_ held
  void WriteNext();                      // with mutex_ held
  void AwaitStatus();
  void Break(absl::Status why);
  void EndIfOver();
  bool WaitForEnd(ExecuteQueue::Deadline deadline);

  // A Describe call in flight. The owner uses it; any thread may cancel it.
  struct LifeCheck {
    grpc::ClientContext context;
    v1::DescribeResponse answer;
    grpc::Status status;
    std::chrono::milliseconds within{0};
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::DescribeResponse>> call;
  };

  v1::Shard::Stub& stub_;
  const std::uint32_t rank_;
  ExecuteListener* const listener_;
  const std::shared_ptr<ExecuteQueue> queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::StepPlan, v1::StepResult>> call_;
  Step start_{*this, &Stream::OnStarted};
  Step read_{*this, &Stream::OnReadDone};
  Step write_{*this, &Stream::OnWriteDone};
  Step finish_{*this, &Stream::OnFinished};
  Step life_{*this, &Stream::OnLifeChecked};
  v1::StepResult incoming_;  // reused: it keeps its memory from one result to the next
  grpc::Status status_;
  bool finished_ = false;  // owner only: status_ is set

  std::mutex mutex_;
  std::condition_variable ended_;
  v1::StepPlan outgoing_;            // reused
  std::deque<v1::StepPlan> outbox_;  // plans; bounded by the caller's pipeline depth
  absl::Status broken_;              // why this side cancelled the call
  std::unique_ptr<LifeCheck> life_check_;
  bool started_ = false;
  bool writing_ = false;  // an operation of the sending side is in flight
  bool closing_ = false;
  bool write_side_done_ = false;
  bool done_ = false;
};

}  // namespace penstock::router
