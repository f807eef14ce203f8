#include "router/api/http_service.h"

#include <utility>

#include "common/log.h"
#include "router/http/tls_context.h"

namespace penstock::router {
namespace {

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

bool AnyoneMayUse(const HttpOptions& http, const ApiOptions& api) {
  if (api.keys != nullptr && !api.keys->Get()->empty()) return false;
  return http.tls == nullptr || !http.tls->Get()->asks_clients();
}

}  // namespace

HttpService::HttpService(HttpOptions http, ApiOptions api, const DialectOptions& dialects,
                         Engine& engine, Metrics& metrics)
    : warn_(!IsLoopback(http.host) && AnyoneMayUse(http, api)),
      context_(std::move(api), MakeDialects(dialects), engine, metrics),
      api_(context_),
      server_(std::move(http), api_, metrics) {}

absl::StatusOr<std::uint16_t> HttpService::Start() {
  if (warn_) {
    log::Warn(
        "listening beyond this machine without an API key: anyone who reaches it may use it; set "
        "--api-key or --api-keys-file");
  }
  return server_.Start();
}

}  // namespace penstock::router
