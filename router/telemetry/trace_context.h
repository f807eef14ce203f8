// W3C trace context (https://www.w3.org/TR/trace-context/, level 1): the trace of a request.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::router {

using TraceId = std::array<std::uint8_t, 16>;
using SpanId = std::array<std::uint8_t, 8>;

// A span of a trace, as the header identifies it.
struct TraceContext {
  TraceId trace{};
  SpanId span{};
  bool sampled = false;
  std::string state;  // `tracestate` as received, at most 512 bytes
};

// Parses the values of `traceparent` and `tracestate`. Nullopt when the first is absent or not
// well-formed; the second is then ignored.
std::optional<TraceContext> ParseTraceContext(std::string_view traceparent,
                                              std::string_view tracestate);

// The value of `traceparent`.
std::string FormatTraceparent(const TraceContext& context);

// Random ids, never zero. Thread-safe.
TraceId NewTraceId();
SpanId NewSpanId();

}  // namespace penstock::router
