// The dialect of text-generation-inference.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/api/dialect.h"

namespace penstock::router::tgi {

// TGI's own routes, beside those of other dialects: answers have keys that TGI does not have.
std::unique_ptr<const Dialect> MakeDialect();

// Stands in for TGI's router: also its OpenAI and SageMaker routes, the facts that TGI shows and no
// others, and the refusals of its HTTP framework on every route.
std::unique_ptr<const Dialect> MakeStandInDialect();

// POST /invocations: a generation, a chat or a completion, by its body. With `own_keys` the keys
// that TGI does not have count.
void Invocations(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange,
                 bool own_keys);

}  // namespace penstock::router::tgi
