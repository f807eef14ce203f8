// OpenAI's routes. One file per handler.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/http/application.h"

namespace penstock::router::openai {

void ChatCompletions(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Completions(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// GET /v1/models and GET /v1/models/{id}; ids may hold slashes.
void Models(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Model(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::openai
