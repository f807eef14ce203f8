// The router process: loads the tokenizer, forms the groups, serves HTTP, and waits for a signal or
// the loss of the shards.
#pragma once

#include "common/notify.h"
#include "common/options/values.h"

namespace penstock::router {

// Serves until SIGTERM or SIGINT, then drains, or until the shards are lost. Returns an exit code
// (common/exit_codes.h). Errors are logged and reported to the launcher. Call it while the process
// has one thread: it blocks signals for all threads that start later.
int RunRouter(const options::Values& values, const Notifier& notifier);

}  // namespace penstock::router
