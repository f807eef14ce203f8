// Creates the load: one thread, one coroutine per request in flight.
#pragma once

#include <absl/status/statusor.h>

#include "tools/bench/load_options.h"
#include "tools/bench/stats.h"

namespace penstock::bench {

// Unavailable if the server cannot be reached at all. Failures of single requests are in the
// report.
absl::StatusOr<RunReport> Run(const LoadOptions& config);

}  // namespace penstock::bench
