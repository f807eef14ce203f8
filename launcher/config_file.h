// --config FILE: YAML, one `name: value` a line, lists where an option takes one.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/options/values.h"

namespace penstock::launcher {

// The entries in the file's order, each with "path:line". Which names exist is the options table's
// matter; this reports what is wrong with the file itself: unreadable, no YAML, nested maps, a name
// given twice. A name without a value (`port:`) counts as absent.
absl::StatusOr<std::vector<options::ConfigEntry>> ReadConfigFile(const std::string& path);

// The same for a text; `name` stands for the path in messages.
absl::StatusOr<std::vector<options::ConfigEntry>> ParseConfigText(const std::string& text,
                                                                  const std::string& name);

}  // namespace penstock::launcher
