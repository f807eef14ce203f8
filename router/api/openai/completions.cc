#include "router/api/openai/flow.h"
#include "router/api/openai/handlers.h"

namespace penstock::router::openai {

void Completions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<CompletionRequest> parsed = ParseCompletion(http.body);
  if (!Accepted(context, "/v1/completions", parsed, *exchange)) return;
  const CompletionRequest& request = parsed.request;
  AnswerStyle style = MakeStyle(context, false, http.head.request_id);
  style.logprobs = request.logprobs.has_value();
  Launch(context, request, std::move(style),
         LowerCompletion(context, request, http.head.request_id), http.head, std::move(exchange));
}

}  // namespace penstock::router::openai
