// --config FILE: YAML, one `name: value` a line, lists where an option takes one.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/options/values.h"

namespace penstock::launcher {

// The entries in the order of the file, each with "path:line". Errors are those of the file itself:
// unreadable, no YAML, nested maps, a repeated name. The options table checks names and values. A
// name without a value (`port:`) counts as absent.
absl::StatusOr<std::vector<options::ConfigEntry>> ReadConfigFile(const std::string& path);

// The same for a text. Messages use `name` as the path.
absl::StatusOr<std::vector<options::ConfigEntry>> ParseConfigText(const std::string& text,
                                                                  const std::string& name);

}  // namespace penstock::launcher
