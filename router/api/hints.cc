#include "router/api/hints.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "router/json/writer.h"

namespace penstock::router {
namespace {

// If the header is absent, `out` does not change.
template <class T>
std::optional<ApiError> ReadNumber(const RequestHead& head, std::string_view name,
                                   std::string_view limit, T least, T& out) {
  const std::string_view text = head.Find(name);
  if (text.empty()) return std::nullopt;
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least) {
    std::string message = "the header `";
    message.append(name).append("` must be a whole number ").append(limit).append(". Given: ");
    json::AppendString(message, text.substr(0, 40));
    return ApiError{ApiErrorKind::kValidation, std::move(message), std::string(name)};
  }
  out = value;
  return std::nullopt;
}

constexpr std::string_view kTimeoutHeader = "x-request-timeout";

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr Unit kUnits[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"", 1}};

struct Operation {
  std::string_view path;
  std::string_view name;
};
constexpr Operation kOperations[] = {
    {"/", "compat_generate"},
    {"/v1/chat/completions", "chat_completions"},
    {"/v1/completions", "completions"},
    {"/v1/messages", "messages"},
};

// The path has a handler, so the result is one of a few names.
std::string OperationOf(std::string_view path) {
  for (const Operation& operation : kOperations) {
    if (operation.path == path) return std::string(operation.name);
  }
  return std::string(path.substr(path.starts_with('/') ? 1 : 0));
}

}  // namespace

std::optional<Duration> TimeoutIn(const RequestHead& head) {
  constexpr double kDay = 86400;
  const std::string_view text = head.Find(kTimeoutHeader);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : kUnits) {
    if (rest != unit.name) continue;
    const double seconds = value * unit.seconds;
    if (!(seconds >= 1e-3 && seconds <= kDay)) return std::nullopt;
    return Duration(std::llround(seconds * 1e9));
  }
  return std::nullopt;
}

std::variant<Hints, ApiError> ReadHints(const RequestHead& head) {
  Hints hints;
  hints.tenant = head.tenant;
  if (auto error = ReadNumber(head, "x-penstock-priority", "from -2147483648 to 2147483647",
                              INT32_MIN, hints.priority)) {
    return *std::move(error);
  }
  if (auto error = ReadNumber(head, "x-penstock-predicted-tokens", "from 1 to 4294967295",
                              std::uint32_t{1}, hints.predicted_tokens)) {
    return *std::move(error);
  }
  hints.timeout = TimeoutIn(head);
  if (const std::string_view text = head.Find(kTimeoutHeader); !text.empty() && !hints.timeout) {
    std::string message = "the header `x-request-timeout` must be from 1ms to 86400s, such as ";
    message += "250ms, 30s, 5m or seconds. Given: ";
    json::AppendString(message, text.substr(0, 40));
    return ApiError{ApiErrorKind::kValidation, std::move(message), std::string(kTimeoutHeader)};
  }
  hints.trace = ParseTraceContext(head.Find("traceparent"), head.Find("tracestate"));
  hints.operation = OperationOf(head.path);
  return hints;
}

void ApplyHints(const Hints& hints, std::vector<GenerationRequest>& candidates) {
  for (GenerationRequest& candidate : candidates) {
    candidate.tenant = hints.tenant;
    candidate.priority = hints.priority;
    candidate.predicted_tokens = hints.predicted_tokens;
    candidate.trace = hints.trace;
    candidate.operation = hints.operation;
  }
}

}  // namespace penstock::router
