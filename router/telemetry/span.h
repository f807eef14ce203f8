// A span that has ended, and who takes such spans.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/time.h"
#include "router/telemetry/trace_context.h"

namespace penstock::router {

struct SpanAttribute {
  std::string_view key;  // static storage
  std::variant<std::string, std::int64_t, double, bool> value;
};

struct Span {
  TraceContext context;  // its own; `state` as it came in
  SpanId parent{};       // zeros: the trace begins here
  std::string name;
  bool is_server = false;  // the request as a whole; else a part of it
  Time begin;              // steady clock; the exporter knows what o'clock that was
  Time end;
  std::vector<SpanAttribute> attributes;
  std::string error;  // one line; empty: it went well
};

// Thread-safe. Take never blocks: what does not fit is dropped and counted.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void Take(std::vector<Span> spans) = 0;
};

}  // namespace penstock::router
