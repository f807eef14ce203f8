// The handlers of both kinds of completions.
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "router/api/adapters.h"
#include "router/api/body.h"
#include "router/api/openai/answer.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/lower.h"
#include "router/api/openai/prepare_chat.h"
#include "router/api/openai/request.h"
#include "router/api/run.h"

namespace penstock::router::openai {
namespace {

void Start(ApiContext& context, const Common& request, AnswerStyle style, ErrorKeys keys,
           Lowered lowered, const RequestHead& head, std::shared_ptr<Exchange> exchange) {
  if (const auto* error = std::get_if<ApiError>(&lowered)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  Launch(context, head, ErrorsAbout(keys),
         std::get<std::vector<GenerationRequest>>(std::move(lowered)), exchange,
         [&](const std::vector<GenerationRequest>& candidates) {
           style.choices = candidates.size();
           style.returned_per_prompt = request.n.value_or(1);
           style.prompt_logprobs = request.prompt_logprobs;
           style.include_usage = request.stream_options.include_usage;
           return MakeAnswer(exchange, style, request.stream);
         });
}

}  // namespace

void ChatCompletions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<ChatRequest> parsed = ParseChat(http.body);
  if (!Accept(context, "/v1/chat/completions", "openai", Errors(), parsed, *exchange)) return;
  const ChatRequest& request = parsed.request;
  ErrorKeys keys = {"messages", request.max_tokens ? "max_tokens" : "messages",
                    GrammarKeyOf(request)};
  if (request.max_completion_tokens) keys.length = "max_completion_tokens";
  auto prepared = PrepareChat(context, request, http.head.request_id);
  if (const auto* error = std::get_if<ApiError>(&prepared)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  auto& chat = std::get<PreparedChat>(prepared);
  const bool tools_rule = chat.tools.required || !HasGrammar(request);
  if (chat.tools.NeedsGrammar() && tools_rule) keys.grammar = "tools";
  AnswerStyle style = MakeStyle(context, true, http.head.request_id);
  style.model = ShownModel(context.engine, request.model);
  style.logprobs = request.logprobs;
  style.choices_per_prompt = ChoicesOf(request);
  style.format = context.options.answer_format;
  style.read = {.tools = chat.tools.tools, .parallel_calls = request.parallel_tool_calls};
  style.named_tool = chat.tools.named;
  style.earlier_calls = chat.earlier_calls;
  Start(context, request, std::move(style), keys, std::move(chat.candidates), http.head,
        std::move(exchange));
}

void Completions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<CompletionRequest> parsed = ParseCompletion(http.body);
  if (!Accept(context, "/v1/completions", "openai", Errors(), parsed, *exchange)) return;
  const CompletionRequest& request = parsed.request;
  const ErrorKeys keys = {"prompt", request.max_tokens ? "max_tokens" : "prompt",
                          GrammarKeyOf(request)};
  AnswerStyle style = MakeStyle(context, false, http.head.request_id);
  style.model = ShownModel(context.engine, request.model);
  style.logprobs = request.logprobs.has_value();
  style.top_logprobs = request.logprobs.value_or(0);
  style.choices_per_prompt = ChoicesOf(request);
  style.echo = request.echo;
  style.prompt_only = request.max_tokens == 0u;
  for (const Prompt& prompt : request.prompt.list) {
    if (!request.echo) break;
    const auto* text = std::get_if<std::string>(&prompt);
    style.prompts.push_back(text == nullptr ? "" : *text);
  }
  Start(context, request, std::move(style), keys,
        LowerCompletion(context, request, http.head.request_id), http.head, std::move(exchange));
}

}  // namespace penstock::router::openai
