// Runs one trace per repeat against every mode and gathers what came of it.
#pragma once

#include <absl/status/statusor.h>

#include "tools/bench/effective/options.h"
#include "tools/bench/effective/report.h"

namespace penstock::bench::effective {

// Starts the servers (stopped again before it returns), or attaches. Modes take turns: only one is
// busy at a time.
absl::StatusOr<Report> RunComparison(const Options& options);

}  // namespace penstock::bench::effective
