// The handlers of messages and count_tokens.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "router/api/adapters.h"
#include "router/api/anthropic/answer.h"
#include "router/api/anthropic/dialect.h"
#include "router/api/anthropic/request.h"
#include "router/api/anthropic/translate.h"
#include "router/api/body.h"
#include "router/api/openai/chat_template_inputs.h"
#include "router/api/openai/lower.h"
#include "router/api/openai/prepare_chat.h"
#include "router/api/openai/request.h"
#include "router/api/run.h"
#include "router/json/writer.h"

namespace penstock::router::anthropic {
namespace {

using openai::PreparedChat;

std::variant<PreparedChat, ApiError> Prepare(const ApiContext& context, const Request& request,
                                             const std::string& client_id) {
  auto translated = Translate(request);
  if (auto* error = std::get_if<ApiError>(&translated)) return std::move(*error);
  const auto& [chat, kept_messages] = std::get<Translated>(translated);
  Parsed<openai::ChatRequest> parsed = openai::ParseChat(chat);
  if (parsed.error) return AsAsked(*parsed.error, request);
  // Agents always send a budget, to models that do not reason as well.
  if (!openai::BoundsReasoning(context)) parsed.request.thinking_budget.reset();
  auto prepared = openai::PrepareChat(context, parsed.request, client_id);
  if (auto* error = std::get_if<ApiError>(&prepared)) return AsAsked(std::move(*error), request);
  if (!kept_messages.empty()) {
    auto kept = openai::MessagesForTemplate(kept_messages, *context.options.answer_format);
    auto& prompt = std::get<PreparedChat>(prepared).candidates.front().prompt;
    std::get<ChatInput>(prompt).kept_messages_json = std::move(kept.json);
  }
  return prepared;
}

AnswerStyle MakeStyle(const ApiContext& context, const Request& request, const PreparedChat& chat,
                      const std::string& request_id) {
  AnswerStyle style;
  // Clients may send the same X-Request-Id twice; the number tells the answers apart.
  static std::atomic<std::uint64_t> next{0};
  style.id = "msg_" + request_id + "-" + std::to_string(++next);
  style.model = ShownModel(context.engine, request.model);
  style.request_id = request_id;
  style.format = context.options.answer_format;
  style.read.tools = chat.tools.tools;
  style.read.parallel_calls =
      !request.tool_choice || !request.tool_choice->disable_parallel_tool_use;
  style.earlier_calls = chat.earlier_calls;
  style.thinking = AsksForThinking(request);
  return style;
}

void Refuse(ApiContext& context, Exchange& exchange, const GenerationError& error) {
  RefuseRequest(context, exchange, Errors(), Errors().FromEngine(error, context.options));
}

}  // namespace

void Messages(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<Request> parsed = ParseMessages(http.body);
  if (!Accept(context, "/v1/messages", "anthropic", Errors(), parsed, *exchange)) return;
  auto prepared = Prepare(context, parsed.request, http.head.request_id);
  if (const auto* error = std::get_if<ApiError>(&prepared)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  auto& chat = std::get<PreparedChat>(prepared);
  for (GenerationRequest& candidate : chat.candidates) {
    candidate.adapter_id = AdapterNamed(context.engine, parsed.request.model);
  }
  AnswerStyle style = MakeStyle(context, parsed.request, chat, http.head.request_id);
  Launch(context, http.head, Errors(), std::move(chat.candidates), exchange,
         [&](const std::vector<GenerationRequest>&) {
           return MakeAnswer(exchange, std::move(style), parsed.request.stream);
         });
}

void CountTokens(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<Request> parsed = ParseCount(http.body);
  if (!Accept(context, "/v1/messages/count_tokens", "anthropic", Errors(), parsed, *exchange)) {
    return;
  }
  auto prepared = Prepare(context, parsed.request, http.head.request_id);
  if (const auto* error = std::get_if<ApiError>(&prepared)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  const auto counted = [&context, exchange](const TokenizedText& tokenized) {
    if (const auto* error = std::get_if<GenerationError>(&tokenized)) {
      return Refuse(context, *exchange, *error);
    }
    const std::size_t tokens = std::get<std::vector<TokenSpan>>(tokenized).size();
    exchange->Respond(JsonResponse(json::ObjectText("input_tokens", tokens)));
  };
  auto& prompt = std::get<PreparedChat>(prepared).candidates.front().prompt;
  context.engine.Render(std::get<ChatInput>(std::move(prompt)),
                        [&context, exchange, counted](RenderedChat rendered) {
                          if (const auto* error = std::get_if<GenerationError>(&rendered)) {
                            return Refuse(context, *exchange, *error);
                          }
                          context.engine.Tokenize(std::get<std::string>(std::move(rendered)),
                                                  {.add_special_tokens = false}, counted);
                        });
}

}  // namespace penstock::router::anthropic
