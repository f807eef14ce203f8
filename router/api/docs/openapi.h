// The OpenAPI document and the page about the routes, written from the dialects' routes.
#pragma once

#include <memory>
#include <string>

#include "router/api/context.h"
#include "router/api/dialect_set.h"

namespace penstock::router::docs {

// Has all routes, grouped by path, and the schemas of all dialects.
std::string OpenApi(const DialectSet& dialects, const std::string& version);

// GET /docs, /docs/ and /api-doc/openapi.json.
void Redirect(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Page(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Document(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::docs
