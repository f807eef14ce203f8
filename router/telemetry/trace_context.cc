#include "router/telemetry/trace_context.h"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <random>
#include <span>

#include "common/traceparent.h"

namespace penstock::router {
namespace {

constexpr std::size_t kLongestState = 512;

void ReadHex(std::string_view digits, std::span<std::uint8_t> out) {
  std::ranges::copy(absl::HexStringToBytes({digits.data(), 2 * out.size()}), out.begin());
}

std::string Hex(std::span<const std::uint8_t> bytes) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

template <class Id>
Id NewId() {
  thread_local std::mt19937_64 generator = [] {
    std::random_device entropy;
    std::seed_seq words{entropy(), entropy(), entropy(), entropy()};
    return std::mt19937_64(words);
  }();
  Id id;
  do {
    for (std::uint8_t& byte : id) byte = static_cast<std::uint8_t>(generator());
  } while (id == Id{});
  return id;
}

}  // namespace

std::optional<TraceContext> ParseTraceContext(std::string_view traceparent,
                                              std::string_view tracestate) {
  const std::string_view fields = TraceparentFields(traceparent);
  if (fields.empty()) return std::nullopt;
  TraceContext context;
  std::array<std::uint8_t, 1> flags{};
  ReadHex(fields.substr(3), context.trace);
  ReadHex(fields.substr(36), context.span);
  ReadHex(fields.substr(53), flags);
  context.sampled = (flags[0] & 1) != 0;
  if (tracestate.size() <= kLongestState) context.state = tracestate;
  return context;
}

std::string FormatTraceparent(const TraceContext& context) {
  return "00-" + Hex(context.trace) + "-" + Hex(context.span) + (context.sampled ? "-01" : "-00");
}

TraceId NewTraceId() { return NewId<TraceId>(); }
SpanId NewSpanId() { return NewId<SpanId>(); }

}  // namespace penstock::router
