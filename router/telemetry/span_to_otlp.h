// Spans as OTLP messages.
#pragma once

#include <vector>

#include "otlp/v1/traces.pb.h"
#include "router/telemetry/otlp_exporter.h"
#include "router/telemetry/span.h"

namespace penstock::router {

namespace otlp = opentelemetry::proto::collector::trace::v1;

// One export request with all of `spans`. Converts steady time to wall-clock time by the present
// difference of the clocks.
otlp::ExportTraceServiceRequest ToOtlp(const std::vector<Span>& spans, const OtlpOptions& sender);

}  // namespace penstock::router
