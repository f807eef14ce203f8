// A chat that has been parsed, whatever route it came by.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "router/api/context.h"
#include "router/api/tgi/chat/chat_request.h"
#include "router/http/application.h"

namespace penstock::router::tgi {

void ServeChat(ApiContext& context, const RequestHead& head, ChatRequest chat,
               std::shared_ptr<Exchange> exchange);

std::string Fingerprint(const ApiContext& context);
std::int64_t UnixSeconds();

}  // namespace penstock::router::tgi
