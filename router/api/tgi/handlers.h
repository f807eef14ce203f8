// The routes of text-generation-inference. One file per handler.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/http/application.h"

namespace penstock::router::tgi {

void Generate(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void GenerateStream(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// POST /: generate or stream by the body's `stream`; the plain answer is an array of one.
void Compat(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// POST /invocations: by the body a generation, a chat or a completion.
void Invocations(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// POST /vertex: several generations or chats, their texts as one list.
void Vertex(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Tokenize(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void ChatTokenize(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Info(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

// GET /docs, /docs/ and /api-doc/openapi.json.
void DocsRedirect(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Docs(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void OpenApiDocument(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

// The OpenAI routes as TGI has them, for --api-profile tgi.
void ChatCompletions(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Completions(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::tgi
