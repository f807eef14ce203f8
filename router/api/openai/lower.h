// OpenAI's bodies as generation requests, with the limits of this server.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "router/api/context.h"
#include "router/api/openai/request.h"

namespace penstock::router::openai {

using Lowered = std::variant<std::vector<GenerationRequest>, ApiError>;

// One generation per choice, in the order of their index.
Lowered LowerChat(const ApiContext& context, const ChatRequest& request,
                  const std::string& client_id);
Lowered LowerCompletion(const ApiContext& context, const CompletionRequest& request,
                        const std::string& client_id);

// The grammar that the body asks for with one of its keys. No key: no grammar.
std::variant<Grammar, ApiError> LowerGrammar(const GrammarKeys& keys,
                                             const std::optional<json::Raw>& response_format);
// The key of `request` that names a grammar.
std::string_view GrammarKeyOf(const Common& request);
// Adds the grammar of the body, if the server offers grammars.
std::optional<ApiError> AddGrammar(const ApiContext& context, const Common& request,
                                   GenerationRequest& lowered);

// `response_format`: OpenAI's shapes (`text`, `json_object`, `json_schema`), and TGI's
// (`json`, `json_object`, `json_schema`, `regex`, each with a `value`), which its clients send here
// too. A schema is enforced directly, not translated into a regular expression. `text` has no
// grammar.
std::variant<Grammar, ApiError> LowerResponseFormat(const json::Raw& format);

// Whether `name` means the served model: its names, and what clients send when they do not care.
bool IsServedModel(const ModelFacts& facts, std::string_view name);
ApiError ModelNotFound(const ModelFacts& facts, std::string_view name);

}  // namespace penstock::router::openai
