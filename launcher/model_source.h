// Makes a folder of --model-id before any process starts.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>

#include "common/options/values.h"

namespace penstock::launcher {

// Sets model-id to a folder of this machine, and hub-model-id and hub-commit to where it came from.
// Fetches missing files and logs the progress. During this SIGINT, SIGTERM and SIGHUP end the
// process at once; the next start continues the download.
//
// The model of a folder without a name, such as ".", is served under the name of that folder.
absl::Status ResolveModelId(options::Values& values);

// "demo" for a path like "." in /models/demo; nullopt if the path itself ends with a name.
std::optional<std::string> NameOfFolder(const std::string& path);

}  // namespace penstock::launcher
