// The dialect of effective-batching's server: POST /inference, and GET /stats with its fields and
// formulas and the server's own figures beside them. DELETE /stats resets the statistics.
#pragma once

#include <memory>
#include <string>

#include "router/api/context.h"
#include "router/api/dialect.h"
#include "router/api/effective/stats_book.h"

namespace penstock::router::effective {

// `batching`: shown by GET /stats.
std::unique_ptr<const Dialect> MakeDialect(const std::string& batching);

// {"error", "error_type"} with the name of the kind.
const ErrorFormat& Errors();

void Inference(ApiContext& context, const std::shared_ptr<StatsBook>& book,
               const HttpRequest& request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::effective
