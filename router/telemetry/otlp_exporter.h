// Sends spans to an OpenTelemetry collector: OTLP over gRPC, in batches, from its own thread.
//
// The queue is bounded: spans that do not fit are dropped and counted (penstock_otlp_spans_total).
// A collector that does not answer is tried again with back-off. Requests never wait for spans.
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
  std::chrono::milliseconds batch_delay{1000};  // the longest that a span waits for a full batch
  std::chrono::milliseconds call_timeout{10'000};
  std::chrono::milliseconds retry_first{1000};
  std::chrono::milliseconds retry_longest{30'000};
  std::chrono::milliseconds flush{2000};  // the longest that Stop takes
};

// Errors: InvalidArgument for an invalid endpoint.
absl::Status CheckOtlpEndpoint(const std::string& endpoint);

class OtlpExporter final : public SpanSink {
 public:
  // The metrics must outlive it. The endpoint must be valid; the collector need not run.
  OtlpExporter(OtlpOptions options, Metrics& metrics);
  ~OtlpExporter() override;  // Stop

  void Take(std::vector<Span> spans) override;

  // Sends the queued spans for at most `flush`, then drops the rest. Later spans are dropped.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::router
