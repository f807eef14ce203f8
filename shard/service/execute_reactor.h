// One Execute stream: one plan in, one result out, in order.
//
// A gRPC thread converts each plan and posts it to the model thread. At most kMaxQueuedPlans plans
// wait there; then the stream is not read until one was taken, and gRPC's flow control stops the
// driver. The outbox of results is bounded by the same number. One write is in flight at a time.
//
// The stream ends with OK after the driver has half-closed it and the last result was sent. It ends
// with INVALID_ARGUMENT after an invalid plan, and with the error of the engine after a failed
// step.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstdint>

#include "penstock/v1/shard.pb.h"

namespace penstock::shard {

struct ServiceState;

inline constexpr std::uint32_t kMaxQueuedPlans = 8;

// The reactor owns itself until gRPC and the model thread no longer use it. `state` outlives it.
grpc::ServerBidiReactor<v1::StepPlan, v1::StepResult>* StartExecute(ServiceState& state);

}  // namespace penstock::shard
