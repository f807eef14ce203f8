// SGLang's interface, for its frontend language and its HTTP clients.
//
// POST /generate is also TGI's. The TGI dialect serves the path, and its handler is made by
// GenerateOr: bodies in SGLang's form are answered here, all others there. Nothing else knows that
// the path is shared.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/api/dialect.h"

namespace penstock::router::sglang {

std::unique_ptr<const Dialect> MakeDialect();

// {"error": {"message": TEXT}}
const ErrorFormat& Errors();

void Generate(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// Generate for bodies in SGLang's form, `otherwise` for all others.
Handler GenerateOr(Handler otherwise);

// What the clients ask about the model and the server.
void ModelInfo(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void ServerInfo(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// Generates a token if the server has been idle; 200, or 503.
void HealthGenerate(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// Later prompts of the tenant read nothing that was computed before.
void FlushCache(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// The frontend reports that it has appended the text of some states to another one. That text is in
// its next request, which finds in the prefix cache what its prompt shares with earlier ones.
void Concatenate(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::sglang
