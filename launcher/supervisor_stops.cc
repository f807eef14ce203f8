// The part of the supervisor that ends shards which have been stopped (SIGSTOP, a debugger's hand).
// The kernel tells a parent when a child is stopped and when it goes on, so nobody has to ask an
// idle shard for signs of life.
#include <string>

#include "common/exit_codes.h"
#include "launcher/supervisor.h"

namespace penstock::launcher {

void Supervisor::NoteStops() {
  if (timeouts_.rank.count() <= 0) return;
  for (Child& child : children_) {
    if (!child.alive() || !child.spec.rank.has_value()) continue;
    const std::optional<bool> stopped = child.process->TakeStop();
    if (!stopped.has_value()) continue;
    child.stopped_until.reset();
    if (*stopped) child.stopped_until = Clock::now() + timeouts_.rank;
  }
}

// Told of here, by its name: otherwise the router, whose connection breaks, may be the first to
// tell something.
void Supervisor::KillStopped() {
  for (Child& child : children_) {
    if (!child.alive() || !child.stopped_until.has_value()) continue;
    if (Clock::now() < *child.stopped_until) continue;
    child.stopped_until.reset();
    child.process->Kill();
    if (phase_ == Phase::kStoppingShards) continue;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeouts_.rank);
    const std::string why = child.Label() + " had been stopped for " + std::to_string(ms.count()) +
                            " ms (--rank-timeout)";
    if (GroupsRestart()) {
      FailGroup(static_cast<std::size_t>(child.spec.group), why);
    } else {
      Fail(kExitShardLost, why, &child);
    }
  }
}

}  // namespace penstock::launcher
