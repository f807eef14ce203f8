#include "router/metrics/span_metrics.h"

#include <array>

#include "router/metrics/families.h"

namespace penstock::router {

struct SpanMetrics::Families {
  explicit Families(Registry& registry) : registry(registry) {}

  Registry& registry;
  Family<Counter>& spans = Counters(registry, "penstock_otlp_spans_total",
                                    "Spans for the collector of traces: sent, dropped because "
                                    "the queue was full, or failed.");
};

SpanMetrics::SpanMetrics(Registry& registry) : own_(std::make_unique<Families>(registry)) {}
SpanMetrics::~SpanMetrics() = default;

void SpanMetrics::Add(Outcome outcome, std::uint64_t count) {
  if (count == 0) return;
  constexpr std::array kNames = {"sent", "dropped", "failed"};
  own_->spans.Add({{"outcome", kNames[static_cast<std::size_t>(outcome)]}})
      .Increment(static_cast<double>(count));
}

}  // namespace penstock::router
