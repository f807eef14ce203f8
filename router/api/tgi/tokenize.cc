#include <string>
#include <string_view>
#include <utility>

#include "router/api/openai/dialect.h"
#include "router/api/run.h"
#include "router/api/tgi/chat/chat_prepare.h"
#include "router/api/tgi/dialect.h"
#include "router/api/tgi/handlers.h"
#include "router/json/reader.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

void Answer(ApiContext& context, const std::shared_ptr<Exchange>& exchange, std::string text,
            bool add_special_tokens, bool chat) {
  const auto done = [&context, exchange, text, chat](TokenizedText tokenized) {
    if (const auto* error = std::get_if<GenerationError>(&tokenized)) {
      return RefuseRequest(context, *exchange, Errors(),
                           Errors().FromEngine(*error, context.options));
    }
    // Offsets are in characters.
    const auto append = [&text](std::string& out, const TokenSpan& token) {
      json::AppendObject(out, "id", token.id, "text",
                         text.substr(token.begin, token.end - token.begin), "start", token.begin,
                         "stop", token.end);
    };
    std::string body;
    json::AppendArray(body, std::get<std::vector<TokenSpan>>(tokenized), append);
    if (chat) {
      body = json::ObjectText("tokenize_response", json::Raw{body}, "templated_text", text);
    }
    exchange->Respond(JsonResponse(std::move(body)));
  };
  context.engine.Tokenize(std::move(text), {.add_special_tokens = add_special_tokens}, done);
}

bool IsOfVllm(std::string_view body) {
  json::Reader reader(body);
  std::string key;
  bool vllm = false;
  if (!reader.NextIs('{') || !reader.EnterObject("an object")) return false;
  while (reader.NextKey(key) && reader.Colon() && reader.Skip()) {
    if (key == "inputs") return false;
    vllm = vllm || key == "prompt" || key == "messages";
  }
  return vllm;
}

}  // namespace

void TokenizeEither(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const auto handler = IsOfVllm(http.body) ? openai::Tokenize : Tokenize;
  handler(context, std::move(http), std::move(exchange));
}

void Tokenize(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  Parsed<Request> parsed = ParseRequest(http.body, false);
  if (!Accept(context, "/tokenize", "tgi", Errors(), parsed, *exchange)) return;
  Answer(context, exchange, std::move(parsed.request.inputs), true, false);
}

void ChatTokenize(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<ChatRequest> parsed = ParseChat(http.body);
  if (!Accept(context, "/chat_tokenize", "tgi", Errors(), parsed, *exchange)) return;
  PrepareChat(
      context, parsed.request, [&context, exchange](std::variant<PreparedChat, ApiError> prepared) {
        if (const auto* error = std::get_if<ApiError>(&prepared)) {
          return RefuseRequest(context, *exchange, Errors(), *error);
        }
        Answer(context, exchange, std::get<PreparedChat>(prepared).request.inputs, false, true);
      });
}

}  // namespace penstock::router::tgi
