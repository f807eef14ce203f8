// The routes of effective-batching's server: POST /inference and GET /stats with its fields and
// formulas, honest figures beside them, and DELETE /stats to begin again. One file per handler.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/http/application.h"

namespace penstock::router::effective {

void Inference(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Stats(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void ResetStats(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::effective
