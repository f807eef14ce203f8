// Parses a JSON file that is not trusted.
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/value.hpp>
#include <cstddef>
#include <string_view>

namespace penstock {

// A text with more than `max_depth` nested arrays and objects is refused. The error is
// InvalidArgument in one line, with the place: "is not valid JSON at line 3, column 9 (`NaN,`): …".
absl::StatusOr<boost::json::value> ParseJson(std::string_view text, std::size_t max_depth);

}  // namespace penstock
