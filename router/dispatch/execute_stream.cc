#include "router/dispatch/execute_stream.h"

#include <utility>

#include "common/status.h"
#include "proto/plan_conversion.h"
#include "router/dispatch/grpc_status.h"

namespace penstock::router {

ShardClient::Stream::Stream(v1::Shard::Stub& stub, std::uint32_t rank, ExecuteListener* listener)
    : rank_(rank), listener_(listener) {
  stub.async()->Execute(&context_, this);
}

ShardClient::Stream::~Stream() { Close(std::chrono::milliseconds(0)); }

// The hold keeps the call open for writes that come from outside of callbacks.
void ShardClient::Stream::Start() {
  const std::lock_guard lock(mutex_);
  if (closing_) return;  // the group was lost before this rank's stream had begun
  started_ = true;
  holding_ = true;
  AddHold();
  StartRead(&incoming_);
  StartCall();
}

void ShardClient::Stream::Send(const StepPlan& plan) {
  auto wire = std::make_unique<v1::StepPlan>();
  proto::ToProto(plan, *wire);
  const std::lock_guard lock(mutex_);
  if (closing_ || !holding_) return;
  outbox_.push_back(std::move(wire));
  WriteNext();
}

void ShardClient::Stream::WriteNext() {
  if (writing_ || write_side_done_ || !holding_) return;
  if (!outbox_.empty()) {
    writing_ = true;
    StartWrite(outbox_.front().get());
  } else if (closing_) {
    write_side_done_ = true;
    StartWritesDone();
    ReleaseHold();
  }
}

void ShardClient::Stream::ReleaseHold() {
  if (!std::exchange(holding_, false)) return;
  RemoveHold();
}

void ShardClient::Stream::Close(std::chrono::milliseconds grace) {
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    if (!started_) return;
    WriteNext();
    if (ended_.wait_for(lock, grace, [this] { return done_; })) return;
  }
  Abort();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return done_; });
}

void ShardClient::Stream::Abort() {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  if (done_ || !started_) return;
  context_.TryCancel();
  ReleaseHold();
}

void ShardClient::Stream::OnReadDone(bool ok) {
  if (!ok) {
    const std::lock_guard lock(mutex_);
    ReleaseHold();
    return;
  }
  auto result = proto::FromProto(incoming_);
  if (!result.ok()) {
    {
      const std::lock_guard lock(mutex_);
      broken_ = result.status();
    }
    Abort();
    return;
  }
  listener_->OnResult(rank_, *std::move(result));
  StartRead(&incoming_);
}

void ShardClient::Stream::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  outbox_.pop_front();
  if (ok) {
    WriteNext();
  } else {
    ReleaseHold();
  }
}

void ShardClient::Stream::OnDone(const grpc::Status& status) {
  absl::Status end;
  {
    const std::lock_guard lock(mutex_);
    end = !broken_.ok() ? broken_ : FromGrpc(status);
  }
  listener_->OnStreamEnd(rank_, end);
  const std::lock_guard lock(mutex_);
  done_ = true;
  ended_.notify_all();
}

}  // namespace penstock::router
