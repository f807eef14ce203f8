#include <string_view>
#include <utility>

#include "router/api/native/handlers.h"
#include "router/api/tgi/handlers.h"

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

void Root(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const bool page = request.head.Find("accept").find("text/html") != std::string_view::npos;
  const auto answer = page && !context.options.tgi_profile ? tgi::DocsRedirect : Health;
  answer(context, std::move(request), std::move(exchange));
}

}  // namespace penstock::router::native
