// Headers by which a client may influence the scheduling of a request, on every generation route:
//   X-Penstock-Priority          -2147483648 … 2147483647, larger is sooner (--order priority)
//   X-Penstock-Predicted-Tokens  1 … 4294967295, the expected number of output tokens, for --order
//                                shortest-predicted and --admission optimistic
//   X-Request-Timeout            250ms, 30s, 5m or seconds, up to a day: the answer's deadline
// A hint changes when a request runs, never what it answers. The tenant, which is the name of the
// client's API key, is passed on with the hints.
//
// The headers `traceparent` and `tracestate` (W3C trace context) say which trace the request
// belongs to. Malformed ones are ignored, as the standard demands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "router/api/errors.h"
#include "router/engine.h"
#include "router/http/message.h"

namespace penstock::router {

struct Hints {
  std::string tenant;  // of the head
  std::int32_t priority = 0;
  std::uint32_t predicted_tokens = 0;  // 0 = none
  std::optional<Duration> timeout;
  std::optional<TraceContext> trace;
  std::string operation;  // as TGI names its spans: generate, chat_completions, …
};

// The deadline of a head; nothing if it has none, or a wrong one, which ReadHints reports.
std::optional<Duration> TimeoutIn(const RequestHead& head);

// The hints of a head, or which header is wrong.
std::variant<Hints, ApiError> ReadHints(const RequestHead& head);
void ApplyHints(const Hints& hints, std::vector<GenerationRequest>& candidates);

}  // namespace penstock::router
