// The life of a shard process: start the servers, wait for a signal or for a failed load, stop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/notify.h"
#include "shard/service/step_engine.h"

namespace penstock::shard {

// One engine per rank that this process hosts, each listening on `<socket_prefix>-<its rank>`.
// Tells the launcher of progress, that all are loaded, or the one line of why not. Returns the exit
// code (common/exit_codes.h): 0 after SIGTERM or SIGINT. The calling thread must be the process's
// only one so far: signals are blocked in it and in all that it starts.
int RunShards(std::vector<std::unique_ptr<StepEngine>> engines, const std::string& socket_prefix,
              const Notifier& notifier);

}  // namespace penstock::shard
