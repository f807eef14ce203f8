#include <utility>

#include "router/json/value.h"
#include "router/api/run.h"
#include "router/api/tgi/chat/chat.h"
#include "router/api/tgi/chat/completions.h"
#include "router/api/tgi/generate/flow.h"
#include "router/api/tgi/handlers.h"
#include "router/http/back_thread.h"

namespace penstock::router::tgi {

// SageMaker's route: the first shape that the body has of generate, chat and completion.
void Invocations(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  constexpr std::string_view kRoute = "/invocations";
  context.metrics.RequestArrived(kRoute);
  json::Reader reader(http.body, kLimits);
  json::Value value;
  if (!InBack([&] { return json::ReadValue(reader, value, "a value"); })) {
    return RefuseRequest(context, *exchange, Dialect::kTgi, ToApiError(reader.error()));
  }
  if (Parsed parsed = InBack([&] { return ParseRequest(http.body, true); }); !parsed.error) {
    return Serve(context, {.route = kRoute, .compat = true}, http.head, std::move(parsed.request),
                 std::move(exchange));
  }
  if (ParsedChat parsed = InBack([&] { return ParseChat(http.body); }); !parsed.error) {
    return ServeChat(context, http.head, std::move(parsed.request), std::move(exchange));
  }
  if (const ParsedCompletion parsed = InBack([&] { return ParseCompletion(http.body); });
      !parsed.error) {
    return ServeCompletion(context, http.head, parsed.request, std::move(exchange));
  }
  RefuseRequest(context, *exchange, Dialect::kTgi,
                {ApiErrorKind::kWrongType,
                 "data did not match any variant of untagged enum SagemakerRequest", ""});
}

}  // namespace penstock::router::tgi
