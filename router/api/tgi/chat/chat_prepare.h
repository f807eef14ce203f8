// Turns a chat into the request that TGI generates for it: tools, grammar, template.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "router/api/context.h"
#include "router/api/tgi/chat/chat_request.h"
#include "router/api/tgi/generate/request.h"

namespace penstock::router::tgi {

struct PreparedChat {
  Request request;
  bool uses_tools = false;  // the answer is a call
};

// `done` is called once: inside the call, or on a thread of the text pool.
void PrepareChat(const ApiContext& context, const ChatRequest& chat,
                 std::function<void(std::variant<PreparedChat, ApiError>)> done);

}  // namespace penstock::router::tgi
