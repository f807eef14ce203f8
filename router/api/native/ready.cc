#include <string>
#include <string_view>
#include <utility>

#include "router/api/native/dialect.h"
#include "router/json/writer.h"

namespace penstock::router::native {
namespace {

std::string_view StateName(router::Health state) {
  switch (state) {
    case router::Health::kStarting:
      return "starting";
    case router::Health::kReady:
      return "ready";
    case router::Health::kDraining:
      return "draining";
    case router::Health::kFailed:
      break;
  }
  return "failed";
}

}  // namespace

void Ready(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  const HealthReport report = context.engine.CheckHealth();
  std::string body = "{\"status\":";
  json::AppendString(body, StateName(report.state));
  if (!report.detail.empty()) {
    body += ",\"detail\":";
    json::AppendString(body, report.detail);
  }
  body += '}';
  HttpResponse response{200, "application/json", {}, std::move(body)};
  if (report.state != router::Health::kReady) {
    response.status = 503;
    response.headers.push_back({"retry-after", "2"});
  }
  exchange->Respond(std::move(response));
}

}  // namespace penstock::router::native
