// The error of an option of the command line.
#pragma once

#include <absl/status/status.h>

#include <string_view>

namespace penstock {

// "--option VALUE: must be LIMIT". `value` may be empty.
absl::Status BadOption(std::string_view option, std::string_view value, std::string_view limit);

}  // namespace penstock
