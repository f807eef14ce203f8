#include "router/api/native/handlers.h"

namespace penstock::router::native {

void MetricsPage(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  const char* type = context.options.tgi_profile ? "text/plain; charset=utf-8"
                                                 : "text/plain; version=0.0.4; charset=utf-8";
  exchange->Respond({200, type, {}, context.metrics.Render()});
}

}  // namespace penstock::router::native
