// The launcher's side of model ids: what --model-id names becomes a folder before anything starts.
#pragma once

#include <absl/status/status.h>

#include "common/options/values.h"

namespace penstock::launcher {

// Sets model-id to a folder of this machine, and hub-model-id and hub-commit to where it came from.
// Fetches what is missing, with progress in the log; meanwhile SIGINT, SIGTERM and SIGHUP
// end the process at once (the next start goes on where this one stopped).
absl::Status ResolveModelId(options::Values& values);

}  // namespace penstock::launcher
