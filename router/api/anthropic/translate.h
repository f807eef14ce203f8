// A request of Anthropic's form as the body of a chat of OpenAI's form, which means the same.
#pragma once

#include <string>
#include <variant>

#include "router/api/anthropic/request.h"
#include "router/api/errors.h"

namespace penstock::router::anthropic {

struct Translated {
  std::string chat;  // the body
  // The messages up to the last block with `cache_control`, as the chat's; empty if none has it.
  std::string kept_messages;
};

std::variant<Translated, ApiError> Translate(const Request& request);

// Calls the fields of an error about the translated chat as the client does.
ApiError AsAsked(ApiError error, const Request& request);

// Whether the answer may show its reasoning.
bool AsksForThinking(const Request& request);

}  // namespace penstock::router::anthropic
