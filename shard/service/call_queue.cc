#include "shard/service/call_queue.h"

#include <string>
#include <utility>

#include "common/log.h"
#include "common/thread_name.h"
#include "shard/service/served_call.h"

namespace penstock::shard {

CallQueue::CallQueue(std::unique_ptr<grpc::ServerCompletionQueue> queue)
    : queue_(std::move(queue)) {}

CallQueue::~CallQueue() {
  Close(std::chrono::milliseconds(0));
  Join();
}

void CallQueue::Start() {
  thread_ = std::thread([this] {
    NameThread("calls");
    Run();
  });
}

void CallQueue::Close(std::chrono::milliseconds grace) {
  if (std::exchange(closed_, true)) return;
  grace_ = grace;
  alarm_.Set(queue_.get(), gpr_inf_past(GPR_CLOCK_MONOTONIC), &close_);
}

void CallQueue::Join() {
  if (thread_.joinable()) {
    thread_.join();
  } else if (!shut_down_) {
    Run();
  }
}

void CallQueue::Keep(std::shared_ptr<ServedCall> call) {
  ServedCall* const key = call.get();
  calls_.emplace(key, std::move(call));
}

std::shared_ptr<ServedCall> CallQueue::Release(ServedCall* call) {
  return std::move(calls_.extract(call).mapped());
}

void CallQueue::Run() {
  void* tag = nullptr;
  bool ok = false;
  for (;;) {
    const auto next = queue_->AsyncNext(&tag, &ok, deadline_);
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    if (next == grpc::CompletionQueue::TIMEOUT) return GiveUp();
    static_cast<Operation*>(tag)->Done(ok);
    if (closing_ && calls_.empty() && !shut_down_) ShutDown();
  }
}

void CallQueue::OnClose(bool) {
  closing_ = true;
  deadline_ = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                           gpr_time_from_millis(grace_.count(), GPR_TIMESPAN));
}

void CallQueue::ShutDown() {
  shut_down_ = true;
  deadline_ = gpr_inf_future(GPR_CLOCK_MONOTONIC);
  queue_->Shutdown();
}

// What is still under way ends, for the server has cancelled it, but unheard: an answer to it could
// begin something.
void CallQueue::GiveUp() {
  log::Error("calls that did not end with the server: " + std::to_string(calls_.size()));
  ShutDown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
  }
  calls_.clear();
}

}  // namespace penstock::shard
