#include "router/api/tgi/generate/tokens.h"

#include "router/json/writer.h"

namespace penstock::router::tgi {

void AppendToken(std::string& out, const TokenInfo& token) {
  json::AppendObject(out, "id", token.id, "text", token.text, "logprob", token.logprob, "special",
                     token.special);
}

void AppendPrefillToken(std::string& out, const TokenInfo& token) {
  json::AppendObject(out, "id", token.id, "text", token.text, "logprob", token.logprob);
}

void AppendTokens(std::string& out, const std::vector<TokenInfo>& tokens) {
  json::AppendArray(out, tokens, AppendToken);
}

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
      return "eos_token";
    case FinishReason::kStopToken:
    case FinishReason::kStopString:
      return "stop_sequence";
    case FinishReason::kLength:
    case FinishReason::kCancelled:
      break;
  }
  return "length";
}

std::optional<std::uint64_t> SeedOf(const GenerationEnd& end) {
  if (!end.sampled) return std::nullopt;
  return end.seed;
}

}  // namespace penstock::router::tgi
