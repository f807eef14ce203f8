// Arguments as Python writes them in a call, or as an object with quotes of its own (Gemma).
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "router/answer/bodies/body.h"

namespace penstock::router::answer {

// After the parenthesis of a call. If the arguments are not Python's, the rest up to one of `ends`
// is kept as it is. `ends` must live as long.
std::unique_ptr<Body> MakePythonBody(std::span<const std::string_view> ends);

// An object, which is next: {key:value, …} with strings between `quote`.
std::unique_ptr<Body> MakeObjectBody(std::string_view quote,
                                     std::span<const std::string_view> ends);

}  // namespace penstock::router::answer
