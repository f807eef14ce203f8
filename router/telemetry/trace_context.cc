#include "router/telemetry/trace_context.h"

#include <algorithm>
#include <random>
#include <span>

namespace penstock::router {
namespace {

// version "-" trace id "-" span id "-" flags, in lower-case hexadecimal digits
constexpr std::size_t kTraceparent = 55;
constexpr std::size_t kLongestState = 512;
constexpr std::string_view kDigits = "0123456789abcdef";

bool ReadHex(std::string_view text, std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t high = kDigits.find(text[2 * i]);
    const std::size_t low = kDigits.find(text[2 * i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return false;
    out[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
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
  if (traceparent.size() < kTraceparent) return std::nullopt;
  if (traceparent[2] != '-' || traceparent[35] != '-' || traceparent[52] != '-') {
    return std::nullopt;
  }
  TraceContext context;
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  if (!ReadHex(traceparent, version) || !ReadHex(traceparent.substr(3), context.trace) ||
      !ReadHex(traceparent.substr(36), context.span) || !ReadHex(traceparent.substr(53), flags)) {
    return std::nullopt;
  }
  // Later versions may append fields behind a dash; 255 is forbidden.
  const bool longer = traceparent.size() > kTraceparent;
  if (version[0] == 0xff || (longer && (version[0] == 0 || traceparent[kTraceparent] != '-'))) {
    return std::nullopt;
  }
  if (IsZero(context.trace) || IsZero(context.span)) return std::nullopt;
  context.sampled = (flags[0] & 1) != 0;
  if (tracestate.size() <= kLongestState) context.state = tracestate;
  return context;
}

std::string FormatTraceparent(const TraceContext& context) {
  std::string out = "00-";
  out.reserve(kTraceparent);
  AppendHex(out, context.trace);
  out += '-';
  AppendHex(out, context.span);
  out += context.sampled ? "-01" : "-00";
  return out;
}

TraceId NewTraceId() { return NewId<TraceId>(); }
SpanId NewSpanId() { return NewId<SpanId>(); }

}  // namespace penstock::router
