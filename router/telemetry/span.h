// A span that has ended, and the interface of its receivers.
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
  TraceContext context;  // of this span; `state` as received
  SpanId parent{};       // zeros: none
  std::string name;
  bool is_server = false;  // the request itself; false: a part of it
  Time begin;              // steady clock; the exporter converts it
  Time end;
  std::vector<SpanAttribute> attributes;
  std::string error;  // one line; empty: success
};

// Thread-safe. Take never blocks: spans that do not fit are dropped and counted.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void Take(std::vector<Span> spans) = 0;
};

}  // namespace penstock::router
