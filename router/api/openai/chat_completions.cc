#include "router/api/openai/dialect.h"
#include "router/api/openai/flow.h"
#include "router/http/back_thread.h"

namespace penstock::router::openai {

void ChatCompletions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<ChatRequest> parsed = InBack([&] { return ParseChat(http.body); });
  if (!Accepted(context, "/v1/chat/completions", parsed, *exchange)) return;
  const ChatRequest& request = parsed.request;
  AnswerStyle style = MakeStyle(context, true, http.head.request_id);
  style.logprobs = request.logprobs;
  Lowered lowered = InBack([&] { return LowerChat(context, request, http.head.request_id); });
  Launch(context, request, std::move(style), std::move(lowered), http.head, std::move(exchange));
}

}  // namespace penstock::router::openai
