// Values that a format writes without quotes, as JSON of the types that the tool's schema allows.
#pragma once

#include <string>
#include <string_view>

#include "router/answer/tool_set.h"

namespace penstock::router::answer {

// A value of a type other than string if `text` is one that `types` has, else a string. Of a string
// that may also be a number, 5 is the number. Python's words (True, None) count where no string is
// allowed.
std::string TypedValue(std::string_view text, ParameterTypes types);

}  // namespace penstock::router::answer
