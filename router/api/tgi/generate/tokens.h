// TGI's JSON of tokens and finish reasons.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "router/engine.h"
#include "router/json/fixed_text.h"

namespace penstock::router::tgi {

// {"id":1,"text":"a","logprob":-0.5,"special":false}
void AppendToken(std::string& out, const TokenInfo& token);
// The same in a short way, for nearly all tokens of a stream: a short text without escapes and a
// logprob of usual size. False: it is no such token, and what was added is of no use.
inline constexpr std::size_t kUsualTextBytes = 64;
inline constexpr std::size_t kUsualTokenBytes = kUsualTextBytes + 128;  // the other pieces: 79
template <std::size_t Size>
bool AddUsualToken(json::FixedText<Size>& out, const TokenInfo& token) {
  if (!token.logprob || token.text.size() > kUsualTextBytes) return false;
  out.Add("{\"id\":");
  out.AddInteger(token.id);
  out.Add(",\"text\":");
  if (!out.AddPlainString(token.text)) return false;
  out.Add(",\"logprob\":");
  if (!out.AddPlainFloat(*token.logprob)) return false;
  if (token.special) {
    out.Add(",\"special\":true}");
  } else {
    out.Add(",\"special\":false}");
  }
  return true;
}
// {"id":1,"text":"a","logprob":null}
void AppendPrefillToken(std::string& out, const TokenInfo& token);
void AppendTokens(std::string& out, const std::vector<TokenInfo>& tokens);

std::string_view FinishReasonName(FinishReason reason);

// The number, or null when the request was greedy.
void AppendSeed(std::string& out, const GenerationEnd& end);

}  // namespace penstock::router::tgi
