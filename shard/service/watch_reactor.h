// One WatchLoad stream: writes the newest progress after each change, and ends after the last.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "penstock/v1/shard.pb.h"
#include "shard/service/load_monitor.h"

namespace penstock::shard {

// The reactor owns itself until gRPC no longer uses it. `monitor` outlives it.
grpc::ServerWriteReactor<v1::LoadProgress>* StartWatchLoad(LoadMonitor& monitor);

}  // namespace penstock::shard
