// The handlers of both kinds of completions.
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "router/api/body.h"
#include "router/api/openai/answer.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/lower.h"
#include "router/api/openai/request.h"
#include "router/api/run.h"

namespace penstock::router::openai {
namespace {

void Start(ApiContext& context, const Common& request, bool chat, bool logprobs, LengthKeys keys,
           Lowered lowered, const RequestHead& head, std::shared_ptr<Exchange> exchange) {
  if (const auto* error = std::get_if<ApiError>(&lowered)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  Launch(context, head, ErrorsAbout(keys),
         std::get<std::vector<GenerationRequest>>(std::move(lowered)), exchange,
         [&](const std::vector<GenerationRequest>& candidates) {
           AnswerStyle style = MakeStyle(context, chat, head.request_id);
           style.logprobs = logprobs;
           style.choices = candidates.size();
           style.choices_per_prompt = request.n.value_or(1);
           style.include_usage = request.stream_options.include_usage;
           return MakeAnswer(exchange, std::move(style), request.stream);
         });
}

}  // namespace

void ChatCompletions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<ChatRequest> parsed = ParseChat(http.body);
  if (!Accept(context, "/v1/chat/completions", "openai", Errors(), parsed, *exchange)) return;
  const ChatRequest& request = parsed.request;
  LengthKeys keys = {"messages", request.max_tokens ? "max_tokens" : "messages"};
  if (request.max_completion_tokens) keys.length = "max_completion_tokens";
  Start(context, request, true, request.logprobs, keys,
        LowerChat(context, request, http.head.request_id), http.head, std::move(exchange));
}

void Completions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<CompletionRequest> parsed = ParseCompletion(http.body);
  if (!Accept(context, "/v1/completions", "openai", Errors(), parsed, *exchange)) return;
  const CompletionRequest& request = parsed.request;
  const LengthKeys keys = {"prompt", request.max_tokens ? "max_tokens" : "prompt"};
  Start(context, request, false, request.logprobs.has_value(), keys,
        LowerCompletion(context, request, http.head.request_id), http.head, std::move(exchange));
}

}  // namespace penstock::router::openai
