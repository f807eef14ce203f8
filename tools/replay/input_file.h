// Reads a whole file, such as an input log.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace penstock::replay {

// The error names the path and the cause.
absl::StatusOr<std::string> ReadInputFile(const std::string& path);

}  // namespace penstock::replay
