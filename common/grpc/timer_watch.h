// gRPC's timers as they are, but that their thread sleeps until the next one is due. Internal to
// common/grpc.
//
// gRPC 1.51 keeps timers in several lists and moves those of the next second into heaps, for which
// its thread wakes up once a second and list, empty or not. In front of the functions that it calls
// for its timers stand ours: they write down when each timer is due, let gRPC's do the work, and
// correct the one answer "when to look again". A timer that is due before the thread would look
// again wakes it.
#pragma once

namespace penstock {

// After grpc_init, before the first timer. False: this gRPC is not the one that was read (another
// version, or linked so that its parts cannot be found), and stays as it is.
bool WatchGrpcTimers();

}  // namespace penstock
