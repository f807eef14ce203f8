// The gRPC service of rank 0 to which the remote barriers of the other ranks connect.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "shard/tgi/root_barrier.h"

namespace penstock::shard {

// `barrier` outlives the service.
std::unique_ptr<grpc::Service> MakeBarrierService(RootBarrier& barrier);

}  // namespace penstock::shard
