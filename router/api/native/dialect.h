// Penstock's own routes: probes, metrics, pinned prefixes, adapters and the record of a request.
#pragma once

#include <memory>
#include <string>

#include "router/api/context.h"
#include "router/api/dialect.h"

namespace penstock::router::native {

// `fallback`: the server's default dialect; it writes the errors. It must outlive the
// result.
std::unique_ptr<const Dialect> MakeDialect(const Dialect& fallback);

// GET /cached_prompts: the pinned prefixes of the client's tenant. DELETE /cached_prompts and
// /cached_prompts/{id}: forgets all of them, or one.
void CachedPrompts(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void ForgetCachedPrompts(ApiContext& context, HttpRequest request,
                         std::shared_ptr<Exchange> exchange);
// GET /adapters: the loaded adapters. POST /adapters: loads one. DELETE /adapters/{name}: unloads
// it, and answers once no request uses it.
void Adapters(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void LoadAdapter(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void UnloadAdapter(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// GET /requests/{id}: the state of a request and every decision about it, with its reason.
void Request(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// Appends the member `ledger` of that record.
void AppendLedger(std::string& out, const LedgerView& ledger);

}  // namespace penstock::router::native
