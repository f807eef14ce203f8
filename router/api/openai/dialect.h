// OpenAI's dialect: /v1/chat/completions, /v1/completions and /v1/models.
#pragma once

#include <memory>
#include <string_view>

#include "router/api/context.h"
#include "router/api/dialect.h"

namespace penstock::router::openai {

std::unique_ptr<const Dialect> MakeDialect();

// {"error": {"message", "type", "param", "code"}}.
const ErrorFormat& Errors();

// The keys of a request that an error about its length or grammar names. Of static storage.
struct ErrorKeys {
  std::string_view prompt = "prompt";      // or "messages", "input"
  std::string_view length = "max_tokens";  // the key that gave the length; the prompt's if none did
  std::string_view grammar = "response_format";  // the key that gave the grammar
  friend bool operator==(const ErrorKeys&, const ErrorKeys&) = default;
};
// The same errors, about a request with these keys: those of a completion or a chat.
const ErrorFormat& ErrorsAbout(ErrorKeys keys);

void ChatCompletions(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Completions(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// vLLM's POST /tokenize, POST /detokenize and GET /version. TGI's dialect serves the first path,
// and hands over the bodies that are vLLM's.
void Tokenize(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Detokenize(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Version(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// GET /v1/models and GET /v1/models/{id}; ids may hold slashes.
void Models(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Model(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::openai
