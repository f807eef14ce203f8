// The router process: tokenizer, group of shards, engine, HTTP; then waiting for a signal or for
// the loss of the shards.
#pragma once

#include "common/notify.h"
#include "common/options/values.h"

namespace penstock::router {

// Serves until SIGTERM or SIGINT (drains, then 0) or until the shards are lost. Gives the exit code
// of common/exit_codes.h; what went wrong was logged and told to the launcher. Call it while the
// process has one thread: it blocks the signals for all that follow.
int RunRouter(const options::Values& values, const Notifier& notifier);

}  // namespace penstock::router
