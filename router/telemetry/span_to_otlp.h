// Spans as OTLP messages.
#pragma once

#include <string>
#include <vector>

#include "otlp/v1/traces.pb.h"
#include "router/telemetry/span.h"

namespace penstock::router {

namespace otlp = opentelemetry::proto::collector::trace::v1;

// Who sends them.
struct OtlpResourceFacts {
  std::string service_name;
  std::string version;
  std::string model;
  std::string scheme;  // of the listener: what all clients came by
};

// One request with all of `spans`. Steady time becomes wall-clock time by today's difference.
otlp::ExportTraceServiceRequest ToOtlp(const std::vector<Span>& spans,
                                       const OtlpResourceFacts& facts);

}  // namespace penstock::router
