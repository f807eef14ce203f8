#include "router/api/http_service.h"

#include <utility>

#include "common/log.h"
#include "router/api/api.h"
#include "router/http/server.h"
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

struct HttpService::Impl {
  Impl(HttpOptions http, ApiOptions options, DialectSet dialects, Engine& engine, Metrics& metrics)
      : warn(!IsLoopback(http.host) && AnyoneMayUse(http, options)),
        context(std::move(options), std::move(dialects), engine, metrics),
        api(context),
        server(std::move(http), api, metrics) {}

  bool warn;
  ApiContext context;
  Api api;
  HttpServer server;
};

HttpService::HttpService(HttpOptions http, ApiOptions api, const DialectOptions& dialects,
                         Engine& engine, Metrics& metrics)
    : impl_(std::make_unique<Impl>(std::move(http), std::move(api), MakeDialects(dialects), engine,
                                   metrics)) {}

HttpService::~HttpService() = default;

absl::StatusOr<std::uint16_t> HttpService::Start() {
  if (impl_->warn) {
    log::Warn("listening beyond this machine without an API key: anyone who reaches it may use it");
  }
  return impl_->server.Start();
}

void HttpService::Stop(Duration drain) { impl_->server.Stop(drain); }

}  // namespace penstock::router
