// Order::kLearned: the request with the least predicted work is next. The work is counted in steps
// of the request alone:
//
//   output tokens that it is expected to generate
//   + steps that compute its prompt, without what a prefix cache has
//
// The expected output is the client's forecast, else that of the router's model, else the longest
// output that it may have. It is never more than the length that the client gave. A request that
// yielded counts what is left. One that outgrew its forecast is expected to be twice as long as
// now.
//
// The work is computed once, when a request comes to the queue: the prefix cache is asked for one
// request at an input, and the rank does not change while it waits.
#pragma once

#include <memory>

#include "scheduler/config.h"
#include "scheduler/order/order_policy.h"
#include "scheduler/replica_groups.h"

namespace penstock::scheduler {

// `groups` must outlive the order.
std::unique_ptr<OrderPolicy> MakeLearnedOrder(const Config& config, const ReplicaGroups& groups);

}  // namespace penstock::scheduler
