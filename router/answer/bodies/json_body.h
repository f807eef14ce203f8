// Arguments that are JSON already: an object, kept as the model wrote it, or a string that holds
// its text.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "router/answer/bodies/body.h"

namespace penstock::router::answer {

// The arguments end where the brackets of their first value match, or before one of `ends` outside
// of strings. `ends` must live as long.
std::unique_ptr<Body> MakeJsonBody(std::span<const std::string_view> ends);

// The content of a JSON string, which is next.
std::unique_ptr<Body> MakeJsonStringBody();

}  // namespace penstock::router::answer
