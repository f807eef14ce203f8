// TGI's JSON of tokens, finish reasons and token counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/engine.h"

namespace penstock::router::tgi {

// {"id":1,"text":"a","logprob":-0.5,"special":false}, after a comma if `out` ends with a value.
void AppendToken(std::string& out, const TokenInfo& token);
// {"id":1,"text":"a","logprob":null}
void AppendPrefillToken(std::string& out, const TokenInfo& token);
void AppendTokens(std::string& out, const std::vector<TokenInfo>& tokens);

std::string_view FinishReasonName(FinishReason reason);

// Nothing for a greedy request.
std::optional<std::uint64_t> SeedOf(const GenerationEnd& end);

// --- For TGI's OpenAI routes

// "stop" for the end of the text; the rest as TGI says it.
std::string_view OpenAiFinishName(FinishReason reason);

// "usage":{…}
void AppendUsage(std::string& out, std::uint64_t prompt_tokens, std::uint64_t completion_tokens);

// One entry of logprobs.content.
void AppendLogprob(std::string& out, const TokenInfo& token, const std::vector<TokenInfo>& top);

}  // namespace penstock::router::tgi
