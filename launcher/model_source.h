// Makes a folder of --model-id before any process starts.
#pragma once

#include <absl/status/status.h>

#include "common/options/values.h"

namespace penstock::launcher {

// Sets model-id to a folder of this machine, and hub-model-id and hub-commit to where it came from.
// Fetches missing files and logs the progress. During this SIGINT, SIGTERM and SIGHUP end the
// process at once; the next start continues the download.
absl::Status ResolveModelId(options::Values& values);

}  // namespace penstock::launcher
