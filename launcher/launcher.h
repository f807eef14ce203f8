// The launcher as a function of its options.
#pragma once

#include "common/options/values.h"
#include "launcher/serving/serving_properties.h"

namespace penstock::launcher {

// Starts the server, waits until it has ended and gives the exit code (common/exit_codes.h). Errors
// go to standard error, the cause last. Blocks SIGINT, SIGTERM and SIGHUP in the calling thread,
// which must be the only one. `serving` logs its notes once the log is set up.
int Launch(options::Values values, const ServingSource& serving);

// A line of --print-config: the backend that a shard would use for the model's folder. Empty if
// there is no folder yet, or if the shards are simulated.
std::string BackendLine(const options::Values& values);

}  // namespace penstock::launcher
