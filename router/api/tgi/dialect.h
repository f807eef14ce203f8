// The dialect of text-generation-inference.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/api/dialect.h"

namespace penstock::router::tgi {

// TGI's own routes, for a server with other dialects. Answers have keys that TGI does not have.
std::unique_ptr<const Dialect> MakeDialect();

// TGI's dialect of a server that replaces TGI's router. It adds TGI's OpenAI and SageMaker routes,
// shows only the facts that TGI shows, and refuses as TGI's HTTP framework does, on every route.
std::unique_ptr<const Dialect> MakeStandInDialect();

// POST /invocations: a generation, a chat or a completion, by its body. `own_keys`: keys that TGI
// does not have are read.
void Invocations(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange,
                 bool own_keys);

}  // namespace penstock::router::tgi
