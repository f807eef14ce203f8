#include "router/telemetry/trace_context.h"

#include <algorithm>
#include <random>
#include <span>

#include "common/traceparent.h"

namespace penstock::router {
namespace {

constexpr std::size_t kLongestState = 512;
constexpr std::string_view kDigits = "0123456789abcdef";

void ReadHex(std::string_view digits, std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::uint8_t>(kDigits.find(digits[2 * i]) << 4 |
                                       kDigits.find(digits[2 * i + 1]));
  }
}

void AppendHex(std::string& out, std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xf];
  }
}

bool IsZero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
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
  } while (IsZero(id));
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
  std::string out = "00-";
  out.reserve(kTraceparentLength);
  AppendHex(out, context.trace);
  out += '-';
  AppendHex(out, context.span);
  out += context.sampled ? "-01" : "-00";
  return out;
}

TraceId NewTraceId() { return NewId<TraceId>(); }
SpanId NewSpanId() { return NewId<SpanId>(); }

}  // namespace penstock::router
