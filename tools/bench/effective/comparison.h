// Runs one trace per repeat against every mode and collects the results.
#pragma once

#include <absl/status/statusor.h>

#include "tools/bench/effective/options.h"
#include "tools/bench/effective/report.h"

namespace penstock::bench::effective {

// Starts the servers and stops them before it returns, or uses servers that are running. Only one
// mode is busy at a time.
absl::StatusOr<Report> RunComparison(const Options& options);

}  // namespace penstock::bench::effective
