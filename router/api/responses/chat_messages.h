// A conversation of items as the messages of a chat.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "router/api/responses/item.h"

namespace penstock::router::responses {

// An array of OpenAI's messages. `instructions` and the system and developer messages at the
// beginning become one message, because many templates take only one. Reasoning, text and calls
// that follow each other are one message of the assistant, as its template wrote them.
std::string ChatMessages(std::string_view instructions, const std::vector<Item>& items);

}  // namespace penstock::router::responses
