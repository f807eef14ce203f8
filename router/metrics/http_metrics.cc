#include "router/metrics/http_metrics.h"

#include <string>

#include "router/metrics/families.h"

namespace penstock::router {

struct HttpMetrics::Families {
  explicit Families(Registry& registry) : registry(registry) {}

  Registry& registry;
  Family<Counter>& responses =
      Counters(registry, "penstock_http_responses_total", "HTTP responses by route and status.");
  Gauge& connections = OneGauge(registry, "penstock_http_connections", "Open client connections.");
  Counter& connections_refused =
      Counters(registry, "penstock_http_connections_refused_total",
               "Connections refused because the connection limit was reached.")
          .Add({});
  Counter& tls_handshakes_failed =
      Counters(registry, "penstock_tls_handshakes_failed_total", "TLS handshakes that failed.")
          .Add({});
};

HttpMetrics::HttpMetrics(Registry& registry) : own_(std::make_unique<Families>(registry)) {}
HttpMetrics::~HttpMetrics() = default;

void HttpMetrics::Response(std::string_view route, int status) {
  own_->responses.Add({{"route", std::string(route)}, {"code", std::to_string(status)}})
      .Increment();
}

void HttpMetrics::ConnectionOpened() { own_->connections.Increment(); }
void HttpMetrics::ConnectionClosed() { own_->connections.Decrement(); }
void HttpMetrics::ConnectionRefused() { own_->connections_refused.Increment(); }
void HttpMetrics::TlsHandshakeFailed() { own_->tls_handshakes_failed.Increment(); }

}  // namespace penstock::router
