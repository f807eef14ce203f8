// The barrier of ranks 1, 2, and so on: a gRPC stream to rank 0.
#pragma once

#include <memory>
#include <string>

#include "shard/tgi/rank_barrier.h"

namespace penstock::shard {

// `socket` is the path of rank 0's Unix socket. The first arrival opens the stream. A broken stream
// fails its waiting arrivals with UNAVAILABLE; the next arrival opens a new one.
std::unique_ptr<RankBarrier> MakeRemoteBarrier(const std::string& socket);

}  // namespace penstock::shard
