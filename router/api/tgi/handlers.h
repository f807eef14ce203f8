// The handlers of TGI's routes.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/http/application.h"

namespace penstock::router::tgi {

// POST /vertex: several generations or chats; the answer is a list of their texts.
void Vertex(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Tokenize(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// The same, and vLLM's form of it: a body with `prompt` or `messages` and without `inputs`.
void TokenizeEither(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void ChatTokenize(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

// GET /info: TGI's keys in TGI's order, and with `own_keys` those of older releases of TGI that
// dashboards still read.
void Info(const ApiContext& context, Exchange& exchange, bool own_keys);
// GET /v1/models.
void Models(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// GET /health: 200 when requests would be served, else 503.
void Health(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

void ChatCompletions(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Completions(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::tgi
