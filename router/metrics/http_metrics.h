// What router/http counts: responses by route and status, and connections. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "router/metrics/families.h"

namespace penstock::router {

class HttpMetrics {
 public:
  explicit HttpMetrics(Registry& registry) : make_(registry) {}

  // `error`: the kind of the error that ended the request, also after a status of 200 was sent.
  // Empty: there was none.
  void Response(std::string_view route, int status, std::string_view error) {
    prometheus::Labels labels = {{"route", std::string(route)}, {"code", std::to_string(status)}};
    if (!error.empty()) labels.emplace("error", std::string(error));
    responses_.Add(labels).Increment();
  }
  void ConnectionOpened() { connections_.Increment(); }
  void ConnectionClosed() { connections_.Decrement(); }
  void ConnectionRefused() { connections_refused_.Increment(); }  // over the connection limit
  void TlsHandshakeFailed() { tls_handshakes_failed_.Increment(); }

 private:
  Families make_;
  Family<Counter>& responses_ =
      make_.Counters("penstock_http_responses_total",
                     "HTTP responses by route, status and kind of error.", "code error route");
  Gauge& connections_ = make_.OneGauge("penstock_http_connections", "Open client connections.");
  Counter& connections_refused_ =
      make_.OneCounter("penstock_http_connections_refused_total",
                       "Connections refused because the connection limit was reached.");
  Counter& tls_handshakes_failed_ =
      make_.OneCounter("penstock_tls_handshakes_failed_total", "TLS handshakes that failed.");
};

}  // namespace penstock::router
