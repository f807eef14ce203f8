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
  if (reason == FinishReason::kEos) return "eos_token";
  const bool length = reason == FinishReason::kLength || reason == FinishReason::kCancelled;
  return length ? "length" : "stop_sequence";
}

std::optional<std::uint64_t> SeedOf(const GenerationEnd& end) {
  if (!end.sampled) return std::nullopt;
  return end.seed;
}

std::string_view OpenAiFinishName(FinishReason reason) {
  const std::string_view name = FinishReasonName(reason);
  return name == "eos_token" ? "stop" : name;
}

void AppendUsage(std::string& out, std::uint64_t prompt_tokens, std::uint64_t completion_tokens) {
  json::AppendMembers(
      out, "usage",
      json::Object("prompt_tokens", prompt_tokens, "completion_tokens", completion_tokens,
                   "total_tokens", prompt_tokens + completion_tokens));
}

void AppendLogprob(std::string& out, const TokenInfo& token, const std::vector<TokenInfo>& top) {
  const auto append = [](std::string& list, const TokenInfo& each) {
    json::AppendObject(list, "token", each.text, "logprob", each.logprob.value_or(0.0f));
  };
  json::AppendObject(out, "token", token.text, "logprob", token.logprob, "top_logprobs",
                     json::Array(top, append));
}

}  // namespace penstock::router::tgi
