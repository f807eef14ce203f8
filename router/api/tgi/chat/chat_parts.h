// JSON that the answers of TGI's OpenAI routes share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "router/engine.h"

namespace penstock::router::tgi {

// "stop" for the end of the text; the rest as TGI says it.
std::string_view OpenAiFinishName(FinishReason reason);

// "usage":{…}
void AppendUsage(std::string& out, std::uint64_t prompt_tokens, std::uint64_t completion_tokens);

// One entry of logprobs.content.
void AppendLogprob(std::string& out, const TokenInfo& token, const std::vector<TokenInfo>& top);

}  // namespace penstock::router::tgi
