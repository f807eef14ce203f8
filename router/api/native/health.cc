#include <utility>

#include "router/api/native/handlers.h"

namespace penstock::router::native {

void Health(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  context.engine.ProbeHealth([exchange = std::move(exchange)](const HealthReport& report) {
    if (report.state == router::Health::kReady) {
      exchange->Respond({200, "", {}, ""});
      return;
    }
    exchange->Respond({503,
                       "application/json",
                       {{"retry-after", "2"}},
                       "{\"error\":\"unhealthy\",\"error_type\":\"healthcheck\"}"});
  });
}

}  // namespace penstock::router::native
