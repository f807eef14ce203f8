#include "router/api/native/handlers.h"

namespace penstock::router::native {

void MetricsPage(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond(
      {200, "text/plain; version=0.0.4; charset=utf-8", {}, context.metrics.Render()});
}

}  // namespace penstock::router::native
