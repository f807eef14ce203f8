#include "common/grpc/idle.h"

#include <grpc/event_engine/event_engine.h>
#include <grpc/grpc.h>
#include <stdlib.h>

#include <memory>
#include <mutex>

#include "common/grpc/closure_engine.h"
#include "common/grpc/timer_watch.h"

namespace penstock {
namespace {

void Install() {
  // Every 5 s a timer would poll connections that no thread polls. Those of Penstock either have a
  // stream, whose completion queue polls them, or are used by a blocking call now and then.
  setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "0", 0);
  grpc_event_engine::experimental::SetEventEngineFactory(
      [] { return std::make_unique<ClosureEngine>(); });
  grpc_init();
  WatchGrpcTimers();
}

}  // namespace

void KeepGrpcIdle() {
  static std::once_flag once;
  std::call_once(once, Install);
}

}  // namespace penstock
