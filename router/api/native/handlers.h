// Probes, metrics and the record of a request. One file per handler.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/api/errors.h"
#include "router/http/application.h"

namespace penstock::router::native {

// In whose shape our own routes refuse: DJL's where its interface is the default, so that a client
// has one to read.
inline Dialect ErrorDialect(const ApiOptions& options) {
  return options.djl.is_default ? Dialect::kDjl : Dialect::kNative;
}

// The process turns its event loop: 200 always.
void Live(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// 200 when requests would be served, else 503 with the reason.
void Ready(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// The same in TGI's words.
void Health(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// As /health; a browser is sent to the page about the routes.
void Root(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void MetricsPage(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// GET /cached_prompts: what is kept for the caller's tenant. DELETE /cached_prompts and
// /cached_prompts/{id}: lets go of all of it, or of one.
void CachedPrompts(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void ForgetCachedPrompts(ApiContext& context, HttpRequest request,
                         std::shared_ptr<Exchange> exchange);
// GET /requests/{id}: where a request is and every decision about it, with its reason.
void Request(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::native
