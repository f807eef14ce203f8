// A chat of OpenAI's form as generation requests. Dialects with another form translate their bodies
// into this one first.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "router/api/context.h"
#include "router/api/openai/request.h"
#include "router/api/openai/tools.h"
#include "router/engine.h"

namespace penstock::router::openai {

struct PreparedChat {
  std::vector<GenerationRequest> candidates;  // one for each choice
  ToolChoice tools;
  std::size_t earlier_calls = 0;  // in the messages
};

std::variant<PreparedChat, ApiError> PrepareChat(const ApiContext& context,
                                                 const ChatRequest& request,
                                                 const std::string& client_id);

}  // namespace penstock::router::openai
