#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace penstock::launcher {

// The whole file, or the error "<name> cannot be read: <why>".
absl::StatusOr<std::string> ReadFile(const std::string& path, const std::string& name);

}  // namespace penstock::launcher
