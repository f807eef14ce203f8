// One WatchLoad stream: writes the newest word whenever it changed, and ends after the last.
#pragma once

#include <memory>

#include "penstock/v1/shard.pb.h"
#include "shard/service/load_monitor.h"
#include "shard/service/served_call.h"

namespace penstock::shard {

// `board` outlives the call.
std::shared_ptr<WriteCall<v1::WatchLoadRequest, v1::LoadProgress>> MakeWatchLoad(
    LoadMonitor& board);

}  // namespace penstock::shard
