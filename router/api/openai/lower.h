// OpenAI's bodies as generation requests, with the limits of this server.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "router/api/context.h"
#include "router/api/openai/chat_template_inputs.h"
#include "router/api/openai/request.h"
#include "router/api/openai/tools.h"

namespace penstock::router::openai {

using Lowered = std::variant<std::vector<GenerationRequest>, ApiError>;

// Whether the body names the served model, and whether the ids of `field` are in its vocabulary.
std::optional<ApiError> CheckModel(const ApiContext& context, const std::string& model);
std::optional<ApiError> CheckTokenIds(std::string_view field, const std::vector<TokenId>& ids,
                                      std::uint32_t vocabulary);

// How many texts are generated for each prompt, and the answer has all or the best of them.
std::uint32_t ChoicesOf(const Common& request);

// What the chat template is given.
std::variant<ChatInput, ApiError> LowerChatInput(const ApiContext& context,
                                                 const ChatRequest& request,
                                                 TemplateMessages messages);

// One generation per choice, in the order of their index.
Lowered LowerChat(const ApiContext& context, const ChatRequest& request, const ToolChoice& choice,
                  TemplateMessages messages, const std::string& client_id);
Lowered LowerCompletion(const ApiContext& context, const CompletionRequest& request,
                        const std::string& client_id);

// Whether a `thinking_budget` has an effect: reasoning is known, and grammars are offered.
bool BoundsReasoning(const ApiContext& context);

// The grammar that the body asks for with one of its keys. No key: no grammar.
std::variant<Grammar, ApiError> LowerGrammar(const GrammarKeys& keys);
// Whether one of the keys gives a grammar.
bool HasGrammar(const GrammarKeys& keys);
// The key that names a grammar.
std::string_view GrammarKeyOf(const GrammarKeys& keys);

// `response_format`: OpenAI's shapes (`text`, `json_object`, `json_schema`), llama.cpp's
// (`json_object` with a `schema`), TGI's (`json`, `json_object`, `json_schema`, `regex`, each with
// a `value`), which its clients send here too, and `grammar` and `structural_tag`. A schema is
// enforced directly, not translated into a regular expression. `text` has no grammar.
std::variant<Grammar, ApiError> LowerResponseFormat(const ResponseFormat& format);

// Whether `name` means the served model: its names, and what clients send when they do not care.
bool IsServedModel(const ModelFacts& facts, std::string_view name);
// `adapters`: the names that are served beside the model.
ApiError ModelNotFound(const ModelFacts& facts, std::string_view name,
                       const std::vector<AdapterInfo>& adapters = {});

}  // namespace penstock::router::openai
