// W3C trace context (https://www.w3.org/TR/trace-context/, level 1): which trace a request belongs
// to. Values without identity; nothing here knows a request.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::router {

using TraceId = std::array<std::uint8_t, 16>;
using SpanId = std::array<std::uint8_t, 8>;

// One span of a trace, as its header names it.
struct TraceContext {
  TraceId trace{};
  SpanId span{};
  bool sampled = false;
  std::string state;  // the vendors' own entries; carried on as they came, at most 512 bytes
};

// The values of `traceparent` and `tracestate`; nullopt when the first is absent or not well-formed
// (then the second counts for nothing, and a new trace begins).
std::optional<TraceContext> ParseTraceContext(std::string_view traceparent,
                                              std::string_view tracestate);

// The value of `traceparent`.
std::string FormatTraceparent(const TraceContext& context);

// Random ids, never zero. Thread-safe.
TraceId NewTraceId();
SpanId NewSpanId();

}  // namespace penstock::router
