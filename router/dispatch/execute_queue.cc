#include "router/dispatch/execute_queue.h"

#include <grpc/support/time.h>

#include "common/grpc/operation.h"

namespace penstock::router {
namespace {

// A deadline of gRPC's clock. Only the time until it matters.
gpr_timespec ToGrpc(ExecuteQueue::Deadline deadline) {
  if (deadline == ExecuteQueue::Deadline::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const auto left = deadline - std::chrono::steady_clock::now();
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(nanos, GPR_TIMESPAN));
}

}  // namespace

ExecuteQueue::~ExecuteQueue() {
  completions_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (completions_.Next(&tag, &ok)) {
  }
}

bool ExecuteQueue::Wait(Deadline deadline) {
  void* tag = nullptr;
  bool ok = false;
  if (completions_.AsyncNext(&tag, &ok, ToGrpc(deadline)) != grpc::CompletionQueue::GOT_EVENT) {
    return false;
  }
  if (tag == &alarm_) {
    woken_ = false;
  } else {
    static_cast<Operation*>(tag)->Done(ok);
  }
  return true;
}

void ExecuteQueue::Wake() {
  if (woken_.exchange(true)) return;
  alarm_.Set(&completions_, gpr_inf_past(GPR_CLOCK_MONOTONIC), &alarm_);
}

void ExecuteQueue::DrainStreams() {
  while (live_ > 0) Wait(Deadline::max());
}

}  // namespace penstock::router
