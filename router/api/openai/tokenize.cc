// vLLM's routes about tokens.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "router/api/body.h"
#include "router/api/openai/chat_template_inputs.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/lower.h"
#include "router/api/openai/request.h"
#include "router/api/run.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

using Spans = std::vector<TokenSpan>;

// The engine calls a text `inputs`.
void Refuse(ApiContext& context, Exchange& exchange, const GenerationError& error,
            std::string_view prompt) {
  const ErrorFormat& errors = ErrorsAbout({.prompt = prompt, .length = prompt});
  RefuseRequest(context, exchange, errors, errors.FromEngine(error, context.options));
}

std::string TokensAnswer(const ApiContext& context, const Spans& tokens, bool spellings) {
  const auto id = [](std::string& out, const TokenSpan& token) { json::Append(out, token.id); };
  const auto name = [](std::string& out, const TokenSpan& token) {
    json::Append(out, token.spelling);
  };
  std::string names = "null";
  if (spellings) {
    names.clear();
    json::AppendArray(names, tokens, name);
  }
  return json::ObjectText("count", tokens.size(), "max_model_len",
                          context.engine.Facts().max_total_tokens, "tokens",
                          json::Array(tokens, id), "token_strs", json::Raw{names});
}

void AnswerText(ApiContext& context, const std::shared_ptr<Exchange>& exchange, std::string text,
                TokenizeOptions options, std::string_view key) {
  const auto done = [&context, exchange, options, key](const TokenizedText& tokenized) {
    if (const auto* error = std::get_if<GenerationError>(&tokenized)) {
      return Refuse(context, *exchange, *error, key);
    }
    exchange->Respond(
        JsonResponse(TokensAnswer(context, std::get<Spans>(tokenized), options.spellings)));
  };
  context.engine.Tokenize(std::move(text), options, done);
}

void AnswerChat(ApiContext& context, const std::shared_ptr<Exchange>& exchange,
                const TokenizeRequest& request) {
  auto messages = MessagesOf(context, request);
  if (const auto* error = std::get_if<ApiError>(&messages)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  auto chat = LowerChatInput(context, request, std::get<TemplateMessages>(std::move(messages)));
  if (const auto* error = std::get_if<ApiError>(&chat)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  const TokenizeOptions options = {request.add_special_tokens.value_or(false),
                                   request.return_token_strs};
  const auto done = [&context, exchange, options](RenderedChat rendered) {
    if (const auto* error = std::get_if<GenerationError>(&rendered)) {
      return Refuse(context, *exchange, *error, "messages");
    }
    AnswerText(context, exchange, std::get<std::string>(std::move(rendered)), options, "messages");
  };
  context.engine.Render(std::get<ChatInput>(std::move(chat)), done);
}

std::optional<ApiError> CheckTokenize(const ApiContext& context, const TokenizeRequest& request) {
  if (auto error = CheckModel(context, request.model)) return error;
  const bool chat = request.messages.count > 0;
  if (request.prompt && chat) return MustBe("prompt", "absent beside `messages`", "both");
  if (!request.prompt && !chat) return Invalid("messages", "must have at least one message");
  if (!request.continue_final_message) return std::nullopt;
  return Unsupported("continue_final_message", "is not supported");
}

}  // namespace

void Tokenize(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  Parsed<TokenizeRequest> parsed = ParseTokenize(http.body);
  if (!Accept(context, "/tokenize", "openai", Errors(), parsed, *exchange)) return;
  TokenizeRequest& request = parsed.request;
  if (const auto error = CheckTokenize(context, request)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  if (!request.prompt) return AnswerChat(context, exchange, request);
  AnswerText(context, exchange, *std::move(request.prompt),
             {request.add_special_tokens.value_or(true), request.return_token_strs}, "prompt");
}

void Detokenize(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  Parsed<DetokenizeRequest> parsed = ParseDetokenize(http.body);
  if (!Accept(context, "/detokenize", "openai", Errors(), parsed, *exchange)) return;
  auto error = CheckModel(context, parsed.request.model);
  if (!error) {
    error = CheckTokenIds("tokens", parsed.request.tokens, context.engine.Facts().vocabulary);
  }
  if (error) return RefuseRequest(context, *exchange, Errors(), *error);
  const auto done = [&context, exchange](const DecodedTokens& decoded) {
    if (const auto* failure = std::get_if<GenerationError>(&decoded)) {
      return Refuse(context, *exchange, *failure, "tokens");
    }
    exchange->Respond(JsonResponse(json::ObjectText("prompt", std::get<std::string>(decoded))));
  };
  context.engine.Detokenize(std::move(parsed.request.tokens), done);
}

void Version(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond(JsonResponse(json::ObjectText("version", context.options.version)));
}

}  // namespace penstock::router::openai
