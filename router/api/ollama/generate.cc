// The handlers of chat and generate.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "router/api/body.h"
#include "router/api/ollama/answer.h"
#include "router/api/ollama/dialect.h"
#include "router/api/ollama/request.h"
#include "router/api/ollama/translate.h"
#include "router/api/openai/lower.h"
#include "router/api/openai/prepare_chat.h"
#include "router/api/openai/request.h"
#include "router/api/run.h"

namespace penstock::router::ollama {
namespace {

using openai::PreparedChat;
using Prepared = std::variant<PreparedChat, ApiError>;

Prepared PrepareChat(const ApiContext& context, Translated body, const std::string& client_id) {
  if (auto* error = std::get_if<ApiError>(&body)) return std::move(*error);
  const auto parsed = openai::ParseChat(std::get<std::string>(body));
  if (parsed.error) return *parsed.error;
  return openai::PrepareChat(context, parsed.request, client_id);
}

Prepared PrepareRaw(const ApiContext& context, const GenerateRequest& request,
                    const std::string& client_id) {
  Translated body = TranslateRaw(request);
  if (auto* error = std::get_if<ApiError>(&body)) return std::move(*error);
  const auto parsed = openai::ParseCompletion(std::get<std::string>(body));
  if (parsed.error) return *parsed.error;
  auto lowered = openai::LowerCompletion(context, parsed.request, client_id);
  if (auto* error = std::get_if<ApiError>(&lowered)) return std::move(*error);
  PreparedChat prepared;
  prepared.candidates = std::get<std::vector<GenerationRequest>>(std::move(lowered));
  prepared.candidates.front().max_new_tokens = parsed.request.max_tokens;
  return prepared;
}

AnswerStyle MakeStyle(const Common& request, const RequestHead& head, bool chat) {
  AnswerStyle style;
  static std::atomic<std::uint64_t> next{0};
  style.chat = chat;
  style.id = head.request_id + "-" + std::to_string(++next);
  style.model = request.model;
  return style;
}

// A length that does not fit is cut, as Ollama's is.
void Start(ApiContext& context, const Common& request, AnswerStyle style, Prepared prepared,
           const RequestHead& head, std::shared_ptr<Exchange> exchange) {
  if (const auto* error = std::get_if<ApiError>(&prepared)) {
    return RefuseRequest(context, *exchange, Errors(), AsAsked(*error));
  }
  auto& chat = std::get<PreparedChat>(prepared);
  chat.candidates.front().exact_length = false;
  style.read.tools = chat.tools.tools;
  style.earlier_calls = chat.earlier_calls;
  Launch(context, head, Errors(), std::move(chat.candidates), exchange,
         [&](const std::vector<GenerationRequest>&) {
           return MakeAnswer(exchange, std::move(style), request.stream);
         });
}

// Clients load a model with a request that has nothing to answer.
void AnswerLoaded(const ApiContext& context, const AnswerStyle& style, Exchange& exchange) {
  if (const auto error = openai::CheckModel(context, std::string(WithoutTag(style.model)))) {
    return exchange.Respond(Errors().Response(*error));
  }
  exchange.Respond(JsonResponse(LoadedText(style)));
}

}  // namespace

void Chat(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<ChatRequest> parsed = ParseChat(http.body);
  if (!Accept(context, "/api/chat", "ollama", Errors(), parsed, *exchange)) return;
  const ChatRequest& request = parsed.request;
  AnswerStyle style = MakeStyle(request, http.head, true);
  if (request.messages.list.empty()) return AnswerLoaded(context, style, *exchange);
  style.format = context.options.answer_format;
  Start(context, request, std::move(style),
        PrepareChat(context, TranslateChat(request), http.head.request_id), http.head,
        std::move(exchange));
}

void Generate(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<GenerateRequest> parsed = ParseGenerate(http.body);
  if (!Accept(context, "/api/generate", "ollama", Errors(), parsed, *exchange)) return;
  const GenerateRequest& request = parsed.request;
  AnswerStyle style = MakeStyle(request, http.head, false);
  if (request.prompt.empty()) return AnswerLoaded(context, style, *exchange);
  if (!request.raw) style.format = context.options.answer_format;
  Prepared prepared = request.raw
                          ? PrepareRaw(context, request, http.head.request_id)
                          : PrepareChat(context, TranslateGenerate(request), http.head.request_id);
  Start(context, request, std::move(style), std::move(prepared), http.head, std::move(exchange));
}

}  // namespace penstock::router::ollama
