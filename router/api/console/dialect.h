// The page on `/`: a chat, and a live view of the batch. Its files are in page/; they use this
// server's own routes and nothing of another origin.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/api/dialect.h"

namespace penstock::router::console {

// `fallback`: the server's default dialect; it writes the errors. It must outlive the result.
std::unique_ptr<const Dialect> MakeDialect(const Dialect& fallback);

// The page itself, for browsers that ask for `/`.
void Page(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

// GET /console/events: what each step computed, see Engine::Watch.
void Events(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::console
