// The gRPC stream of a rank to rank 0: its service there, and the barrier of the other ranks.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>

#include "shard/tgi/root_barrier.h"

namespace penstock::shard {

// Rank 0: the service to which the remote barriers connect. `barrier` outlives it.
std::unique_ptr<grpc::Service> MakeBarrierService(RootBarrier& barrier);

// Ranks 1, 2, and so on. `socket` is the path of rank 0's Unix socket. The first arrival opens the
// stream. A broken stream fails its waiting arrivals with UNAVAILABLE; the next arrival opens a new
// one.
std::unique_ptr<RankBarrier> MakeRemoteBarrier(const std::string& socket);

}  // namespace penstock::shard
