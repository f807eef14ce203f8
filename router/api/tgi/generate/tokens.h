// TGI's JSON of tokens and finish reasons.
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

}  // namespace penstock::router::tgi
