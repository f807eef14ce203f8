#include "router/dispatch/execute_stream.h"

#include <string>
#include <utility>

#include "common/status.h"
#include "proto/plan_conversion.h"
#include "router/dispatch/grpc_status.h"

namespace penstock::router {
ShardClient::Stream::Stream(v1::Shard::Stub& stub, std::uint32_t rank, ExecuteListener* listener,
                            std::shared_ptr<ExecuteQueue> queue)
    : stub_(stub),
      rank_(rank),
      listener_(listener),
      queue_(std::move(queue)),
      call_(stub.PrepareAsyncExecute(&context_, &queue_->completions())) {}

ShardClient::Stream::~Stream() { Close(std::chrono::milliseconds(0)); }

void ShardClient::Stream::Start() {
  const std::lock_guard lock(mutex_);
  if (closing_) return;  // the group was lost before this rank's stream had begun
  started_ = writing_ = true;
  queue_->StreamBegins();
  call_->StartCall(&start_);
}

void ShardClient::Stream::OnStarted(bool ok) {
  if (!ok) {
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      write_side_done_ = true;
    }
    return AwaitStatus();
  }
  call_->Read(&incoming_, &read_);
  OnWriteDone(true);
}

void ShardClient::Stream::Send(const StepPlan& plan) {
  const std::lock_guard lock(mutex_);
  if (closing_ || write_side_done_) return;
  if (writing_) return proto::ToProto(plan, outbox_.emplace_back());
  proto::ToProto(plan, outgoing_);
  Write(outgoing_);
  if (!plan.starts.empty()) outgoing_ = v1::StepPlan();  // frees the memory of the prompts
}

// gRPC serializes the plan before Write returns.
void ShardClient::Stream::Write(const v1::StepPlan& plan) {
  writing_ = true;
  call_->Write(plan, &write_);
}

void ShardClient::Stream::WriteNext() {
  if (writing_ || write_side_done_) return;
  if (!outbox_.empty()) {
    Write(outbox_.front());
    outbox_.pop_front();
  } else if (closing_) {
    writing_ = write_side_done_ = true;
    call_->WritesDone(&write_);
  }
}

void ShardClient::Stream::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) write_side_done_ = true;
    WriteNext();
  }
  EndIfOver();
}

void ShardClient::Stream::OnReadDone(bool ok) {
  if (!ok) return AwaitStatus();
  auto result = proto::FromProto(incoming_);
  if (result.ok()) {
    // Read again before handling the result: what has arrived already is read without a poll.
    call_->Read(&incoming_, &read_);
    return listener_->OnResult(rank_, *std::move(result));
  }
  Break(result.status());
  AwaitStatus();
}

void ShardClient::Stream::Break(absl::Status why) {
  {
    const std::lock_guard lock(mutex_);
    broken_ = std::move(why);
  }
  Abort();
}

void ShardClient::Stream::CheckAlive(std::chrono::milliseconds within) {
  const std::lock_guard lock(mutex_);
  if (!started_ || closing_ || write_side_done_ || life_check_ != nullptr) return;
  life_check_ = std::make_unique<LifeCheck>();
  life_check_->within = within;
  life_check_->context.set_deadline(std::chrono::system_clock::now() + within);
  life_check_->call = stub_.AsyncDescribe(&life_check_->context, {}, &queue_->completions());
  life_check_->call->Finish(&life_check_->answer, &life_check_->status, &life_);
}

// Any answer but a timeout shows that the process lives. A broken connection ends the stream too.
void ShardClient::Stream::OnLifeChecked(bool) {
  std::unique_ptr<LifeCheck> check;
  {
    const std::lock_guard lock(mutex_);
    check = std::move(life_check_);
  }
  if (check->status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    Break(absl::UnavailableError("during a step, its process did not answer a life check within " +
                                 std::to_string(check->within.count()) + " ms (--rank-timeout)"));
  }
  EndIfOver();
}

void ShardClient::Stream::AwaitStatus() { call_->Finish(&status_, &finish_); }

void ShardClient::Stream::OnFinished(bool) {
  finished_ = true;
  {
    const std::lock_guard lock(mutex_);
    write_side_done_ = true;
  }
  EndIfOver();
}

// Reports the end when no operation is left that would use this object.
void ShardClient::Stream::EndIfOver() {
  absl::Status end;
  {
    const std::lock_guard lock(mutex_);
    if (!finished_ || writing_ || done_) return;
    if (life_check_ != nullptr) return life_check_->context.TryCancel();
    end = !broken_.ok() ? broken_ : FromGrpc(status_);
  }
  listener_->OnStreamEnd(rank_, end);
  queue_->StreamEnded();
  const std::lock_guard lock(mutex_);
  done_ = true;
  ended_.notify_all();
}

void ShardClient::Stream::Close(std::chrono::milliseconds grace) {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    if (!started_) return;
    WriteNext();
  }
  if (WaitForEnd(std::chrono::steady_clock::now() + grace)) return;
  Abort();
  WaitForEnd(ExecuteQueue::Deadline::max());
}

bool ShardClient::Stream::WaitForEnd(ExecuteQueue::Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!queue_->IsOwner()) {
    const auto over = [this] { return done_; };
    if (deadline != ExecuteQueue::Deadline::max()) return ended_.wait_until(lock, deadline, over);
    ended_.wait(lock, over);
    return true;
  }
  while (!done_) {
    lock.unlock();
    const bool in_time = queue_->Wait(deadline);
    lock.lock();
    if (!in_time) break;
  }
  return done_;
}

void ShardClient::Stream::Abort() {
  const std::lock_guard lock(mutex_);
  closing_ = write_side_done_ = true;
  if (done_ || !started_) return;
  context_.TryCancel();
  if (life_check_ != nullptr) life_check_->context.TryCancel();
}

}  // namespace penstock::router
