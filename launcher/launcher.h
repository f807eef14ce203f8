// The launcher as a function of its options.
#pragma once

#include "common/options/values.h"
#include "launcher/serving/serving_properties.h"

namespace penstock::launcher {

// Starts the server, waits until it has ended and gives the exit code (common/exit_codes.h). Errors
// go to standard error, the cause last. Blocks SIGINT, SIGTERM and SIGHUP in the calling thread,
// which must be the only one. `serving` has its say once the log is set up.
int Launch(options::Values values, const ServingSource& serving);

// What --print-config adds: which backend the shards would run, as a shard says of the model's
// folder. Empty where nobody can say: no folder yet, or simulated shards.
std::string BackendLine(const options::Values& values);

}  // namespace penstock::launcher
