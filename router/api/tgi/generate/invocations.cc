#include <utility>

#include "router/api/body.h"
#include "router/api/tgi/chat/serve.h"
#include "router/api/tgi/dialect.h"
#include "router/api/tgi/generate/flow.h"
#include "router/json/value.h"

namespace penstock::router::tgi {

// SageMaker's route. The body may be a generation, a chat or a completion; the first that fits
// counts.
void Invocations(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange,
                 bool own_keys) {
  constexpr std::string_view kRoute = "/invocations";
  context.metrics.requests().Arrived(kRoute);
  json::Reader reader(http.body, kLimits);
  json::Value value;
  if (!json::ReadValue(reader, value, "a value")) {
    return RefuseRequest(context, *exchange, Errors(), FromJson(reader.error()));
  }
  const auto accepts = [&](const json::UnknownKeys& keys) {
    return AcceptKeys(context, "tgi", Errors(), keys, *exchange);
  };
  if (auto parsed = ParseRequest(http.body, true); !parsed.error) {
    if (!accepts(parsed.unknown_keys)) return;
    return Serve(context, {.route = kRoute, .compat = true, .own_keys = own_keys}, http.head,
                 std::move(parsed.request), std::move(exchange));
  }
  if (auto parsed = ParseChat(http.body); !parsed.error) {
    if (!accepts(parsed.unknown_keys)) return;
    return ServeChat(context, http.head, std::move(parsed.request), std::move(exchange));
  }
  if (const auto parsed = ParseCompletion(http.body); !parsed.error) {
    if (!accepts(parsed.unknown_keys)) return;
    return ServeCompletion(context, http.head, parsed.request, std::move(exchange));
  }
  RefuseRequest(context, *exchange, Errors(),
                {ApiErrorKind::kWrongType,
                 "data did not match any variant of untagged enum SagemakerRequest", ""});
}

}  // namespace penstock::router::tgi
