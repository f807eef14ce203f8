// Sends spans to an OpenTelemetry collector: OTLP over gRPC, in batches, from one thread of its
// own.
//
// The queue is bounded: what does not fit is dropped and counted (penstock_otlp_spans_total). A
// collector that is away is tried again, ever more rarely; meanwhile the queue fills and then drops
// the newest. Nothing here makes a request wait or fail.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "router/telemetry/span.h"

namespace penstock::router {

class Metrics;

struct OtlpOptions {
  std::string endpoint;      // [http://|https://]HOST:PORT[/]
  std::string service_name;  // resource attribute service.name
  std::string version;       // service.version
  std::string model;         // gen_ai.request.model of all spans
  std::string scheme;        // url.scheme of the spans of requests
  std::size_t queue_spans = 4096;
  std::size_t batch_spans = 512;
  std::chrono::milliseconds batch_delay{1000};  // longest wait of a span for company
  std::chrono::milliseconds call_timeout{10'000};
  std::chrono::milliseconds retry_first{1000};
  std::chrono::milliseconds retry_longest{30'000};
  std::chrono::milliseconds flush{2000};  // Stop takes no longer
};

// InvalidArgument when it is not an endpoint.
absl::Status CheckOtlpEndpoint(const std::string& endpoint);

class OtlpExporter final : public SpanSink {
 public:
  // The metrics must outlive it. The endpoint has been checked; the collector need not be there.
  OtlpExporter(OtlpOptions options, Metrics& metrics);
  ~OtlpExporter() override;  // Stop

  void Take(std::vector<Span> spans) override;

  // Sends what is queued, for at most `flush`; what is left then is dropped. Takes nothing more.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::router
