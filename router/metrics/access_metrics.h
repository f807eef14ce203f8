// The files that say who may connect: the certificate and the API keys. Thread-safe.
#pragma once

#include <cstdint>

#include "router/metrics/families.h"

namespace penstock::router {

class AccessMetrics {
 public:
  enum class File { kApiKeys, kCertificate };

  explicit AccessMetrics(Registry& registry)
      : expiry_(Families(registry).Gauges(
            "penstock_tls_certificate_expiry_timestamp_seconds",
            "End of the certificate of --tls-cert, in seconds since 1970; absent without TLS.")),
        reloads_(Families(registry).Counters(
            "penstock_reloads_total",
            "Readings of a file after SIGHUP; a file that failed changed nothing.",
            "file outcome")) {
    for (const char* file : {"api_keys", "certificate"}) {
      for (const char* outcome : {"done", "failed"}) {
        reloads_.Add({{"file", file}, {"outcome", outcome}});
      }
    }
  }

  void CertificateEnds(std::int64_t time) { expiry_.Add({}).Set(static_cast<double>(time)); }
  void Reloaded(File file, bool done) {
    reloads_
        .Add({{"file", file == File::kApiKeys ? "api_keys" : "certificate"},
              {"outcome", done ? "done" : "failed"}})
        .Increment();
  }

 private:
  Family<Gauge>& expiry_;
  Family<Counter>& reloads_;
};

}  // namespace penstock::router
