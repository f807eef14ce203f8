// What becomes of the spans that router/telemetry exports. Thread-safe.
#pragma once

#include <cstdint>

#include "router/metrics/families.h"

namespace penstock::router {

class SpanMetrics {
 public:
  explicit SpanMetrics(Registry& registry)
      : spans_(Families(registry).Counters("penstock_otlp_spans_total",
                                           "Spans for the collector of traces: sent, dropped "
                                           "because the queue was full, or failed because the "
                                           "collector refused them. Spans wait while it does "
                                           "not answer.",
                                           "outcome")) {
    for (const char* outcome : {"sent", "dropped", "failed"}) spans_.Add({{"outcome", outcome}});
  }

  // `outcome`: "sent", "dropped" since the queue was full, or "failed".
  void Count(const char* outcome, std::uint64_t count) {
    if (count > 0) Add(spans_.Add({{"outcome", outcome}}), count);
  }

 private:
  Family<Counter>& spans_;
};

}  // namespace penstock::router
