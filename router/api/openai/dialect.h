// OpenAI's dialect: /v1/chat/completions, /v1/completions and /v1/models.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/api/dialect.h"

namespace penstock::router::openai {

std::unique_ptr<const Dialect> MakeDialect();

// {"error": {"message", "type", "param", "code"}}.
const ErrorFormat& Errors();

void ChatCompletions(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Completions(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// GET /v1/models and GET /v1/models/{id}; ids may hold slashes.
void Models(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Model(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::openai
