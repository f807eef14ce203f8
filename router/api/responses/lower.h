// A response as a chat: its conversation, its tools and the errors about them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "router/api/errors.h"
#include "router/api/responses/request.h"
#include "router/api/responses/store.h"

namespace penstock::router::responses {

// The items that the model gets: those of the previous response, and the input with each reference
// replaced by what it names. Items without an id get one that ends with `suffix`.
std::variant<std::vector<Item>, ApiError> Conversation(const Store& store,
                                                       const std::string& tenant, Input input,
                                                       const std::optional<std::string>& previous,
                                                       const std::string& suffix);

// Items that this server wrote.
std::vector<Item> ReadStored(std::string_view json);

// The tools as OpenAI's chats write them.
std::string ChatTools(const std::vector<FunctionTool>& tools);

// An error about a chat as one about the body of this route.
ApiError AboutResponse(ApiError error);

}  // namespace penstock::router::responses
