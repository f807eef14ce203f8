// Spans as OTLP messages.
#pragma once

#include <string>
#include <vector>

#include "otlp/v1/traces.pb.h"
#include "router/telemetry/span.h"

namespace penstock::router {

namespace otlp = opentelemetry::proto::collector::trace::v1;

// The sender.
struct OtlpResourceFacts {
  std::string service_name;
  std::string version;
  std::string model;
  std::string scheme;  // of the listener
};

// One export request with all of `spans`. Converts steady time to wall-clock time by the present
// difference of the clocks.
otlp::ExportTraceServiceRequest ToOtlp(const std::vector<Span>& spans,
                                       const OtlpResourceFacts& facts);

}  // namespace penstock::router
