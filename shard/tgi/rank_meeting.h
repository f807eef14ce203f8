// The way of ranks 1, 2, … to the meeting place of rank 0: a gRPC stream on rank 0's own socket.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "shard/service/served_call.h"
#include "shard/tgi/meeting_place.h"

namespace penstock::shard {

// Rank 0's service; `place` outlives it.
std::unique_ptr<ServedService> MakeRankMeetingService(MeetingPlace& place);

// The gate of another rank. `socket`: path of rank 0's Unix socket. The stream is opened by the
// first call, and again after it broke; a broken stream fails what waits with UNAVAILABLE. `queue`:
// where it arrives, asked for when it is opened; its thread runs until Stop has returned.
std::unique_ptr<RankGate> MakeFollowingGate(const std::string& socket,
                                            std::function<grpc::CompletionQueue&()> queue);

}  // namespace penstock::shard
