#include "router/api/openai/dialect.h"
#include "router/api/openai/flow.h"
#include "router/http/back_thread.h"

namespace penstock::router::openai {

void Completions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<CompletionRequest> parsed = InBack([&] { return ParseCompletion(http.body); });
  if (!Accepted(context, "/v1/completions", parsed, *exchange)) return;
  const CompletionRequest& request = parsed.request;
  AnswerStyle style = MakeStyle(context, false, http.head.request_id);
  style.logprobs = request.logprobs.has_value();
  Lowered lowered = InBack([&] { return LowerCompletion(context, request, http.head.request_id); });
  Launch(context, request, std::move(style), std::move(lowered), http.head, std::move(exchange));
}

}  // namespace penstock::router::openai
