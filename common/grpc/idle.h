// gRPC without periodic wake-ups (docs/decisions/0032): its threads for timers sleep until a timer
// is due, for ever if none is set.
//
// Holds for any deadline, keepalive and back-off, which come as before. The callback API has
// threads of its own that do look round; Penstock does without it (shard/service/served_call.h).
#pragma once

namespace penstock {

// Once per process, before its first gRPC object; from then on gRPC stays initialised until the
// process ends. A gRPC whose timers are not the known ones (1.51) is left with them.
void KeepGrpcIdle();

}  // namespace penstock
