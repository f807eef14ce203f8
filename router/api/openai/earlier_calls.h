// The calls of earlier answers of a chat, and their results. A chat template prints them, so their
// shape is checked before it sees them.
#pragma once

#include <optional>
#include <string>

#include "router/api/errors.h"
#include "router/json/value.h"

namespace penstock::router::openai {

// "messages[1].tool_calls[0]": how errors name a call.
std::string PlaceOfCall(std::size_t message, std::size_t call);

// An error if a call has no name, if its arguments are neither a text nor an object, or if a result
// names a call that no earlier message has. A result that names none is fine, and so is any result
// once a call without an id has come. Whether a text of arguments is JSON does not matter here: a
// model may have written it, and its client sends it back.
std::optional<ApiError> CheckEarlierCalls(const json::Value& messages);

}  // namespace penstock::router::openai
