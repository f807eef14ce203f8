// Anthropic's dialect: /v1/messages and /v1/messages/count_tokens.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "router/api/context.h"
#include "router/api/dialect.h"

namespace penstock::router::anthropic {

std::unique_ptr<const Dialect> MakeDialect();

// {"type": "error", "error": {"type", "message"}}. The dialect signs answers with the request's id.
const ErrorFormat& Errors();
// The same with the id, for the event of an error.
std::string ErrorBody(const ApiError& error, std::string_view request_id);

void Messages(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);
void CountTokens(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::anthropic
