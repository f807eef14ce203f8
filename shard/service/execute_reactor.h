// One Execute stream: one plan in, one result out, in order.
//
// The thread of the calls converts a plan and posts it to the model thread. At most kMaxQueuedPlans
// plans wait there; then the reactor stops reading until one was taken, and gRPC's flow control
// holds the driver back. Results wait in an outbox that is bounded by the same number, one write at
// a time.
//
// The stream ends with OK when the driver half-closes, after the last result; with
// INVALID_ARGUMENT at a plan that makes no sense; with the engine's error when a step fails.
#pragma once

#include <cstdint>
#include <memory>

#include "penstock/v1/shard.pb.h"
#include "shard/service/served_call.h"

namespace penstock::shard {

struct ServiceState;

inline constexpr std::uint32_t kMaxQueuedPlans = 8;

// `state` outlives the call.
std::shared_ptr<BidiCall<v1::StepPlan, v1::StepResult>> MakeExecute(ServiceState& state);

}  // namespace penstock::shard
