// One WatchLoad stream: writes the newest word whenever it changed, and ends after the last.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "penstock/v1/shard.pb.h"
#include "shard/service/load_board.h"

namespace penstock::shard {

// The reactor owns itself until gRPC is done with it. `board` outlives it.
grpc::ServerWriteReactor<v1::LoadProgress>* StartWatchLoad(LoadBoard& board);

}  // namespace penstock::shard
