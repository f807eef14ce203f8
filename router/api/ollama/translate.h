// Requests of Ollama's form as bodies of OpenAI's form, which mean the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "router/api/errors.h"
#include "router/api/ollama/request.h"

namespace penstock::router::ollama {

// What an absent option means, by Ollama's documents. Its repeat_penalty, which covers the last 64
// tokens only, has no such default here.
inline constexpr float kTemperature = 0.8f;
inline constexpr float kTopP = 0.9f;
inline constexpr std::int32_t kTopK = 40;

using Translated = std::variant<std::string, ApiError>;

Translated TranslateChat(const ChatRequest& request);
// A chat with the prompt as the user's message.
Translated TranslateGenerate(const GenerateRequest& request);
// A completion: the prompt as it is.
Translated TranslateRaw(const GenerateRequest& request);

// Calls the fields of an error about the translated body as the client does.
ApiError AsAsked(ApiError error);

// Ollama's clients add the tag `latest` to names without one.
std::string_view WithoutTag(std::string_view model);

}  // namespace penstock::router::ollama
