// The client side of Execute as a gRPC callback reactor. Internal to dispatch/.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "penstock/v1/shard.grpc.pb.h"
#include "router/dispatch/shard_client.h"

namespace penstock::router {

class ShardClient::Stream final : public grpc::ClientBidiReactor<v1::StepPlan, v1::StepResult> {
 public:
  Stream(v1::Shard::Stub& stub, std::uint32_t rank, ExecuteListener* listener);
  // Ends at once what still runs, and waits for it.
  ~Stream() override;

  void Start();
  void Send(const StepPlan& plan);
  // Ends the sending side in order. After `grace` what has not ended is cancelled. Waits for the
  // end.
  void Close(std::chrono::milliseconds grace);
  void Abort();

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  void WriteNext();    // with mutex_ held
  void ReleaseHold();  // with mutex_ held

  const std::uint32_t rank_;
  ExecuteListener* const listener_;
  grpc::ClientContext context_;
  v1::StepResult incoming_;

  std::mutex mutex_;
  std::condition_variable ended_;
  std::deque<std::unique_ptr<v1::StepPlan>> outbox_;  // bounded by the caller's pipeline depth
  absl::Status broken_;                               // a result that could not be read
  bool started_ = false;
  bool writing_ = false;
  bool closing_ = false;
  bool write_side_done_ = false;
  bool holding_ = false;  // from Start until no more writes can come
  bool done_ = false;
};

}  // namespace penstock::router
