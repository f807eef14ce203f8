// Chats and completions that have been parsed, whatever route they came by.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/api/tgi/chat/chat_request.h"
#include "router/api/tgi/chat/completion_request.h"
#include "router/http/application.h"

namespace penstock::router::tgi {

void ServeChat(ApiContext& context, const RequestHead& head, ChatRequest chat,
               std::shared_ptr<Exchange> exchange);
void ServeCompletion(ApiContext& context, const RequestHead& head,
                     const CompletionRequest& completion, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::tgi
