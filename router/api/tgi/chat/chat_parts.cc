#include "router/api/tgi/chat/chat_parts.h"

#include "router/api/tgi/generate/tokens.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

void AppendTextAndLogprob(std::string& out, const TokenInfo& token) {
  out += "{\"token\":";
  json::AppendString(out, token.text);
  out += ",\"logprob\":";
  json::AppendFloat(out, token.logprob.value_or(0.0f));
}

}  // namespace

std::string_view OpenAiFinishName(FinishReason reason) {
  const std::string_view name = FinishReasonName(reason);
  return name == "eos_token" ? "stop" : name;
}

void AppendUsage(std::string& out, std::uint64_t prompt_tokens, std::uint64_t completion_tokens) {
  out += "\"usage\":{\"prompt_tokens\":";
  json::AppendInteger(out, prompt_tokens);
  out += ",\"completion_tokens\":";
  json::AppendInteger(out, completion_tokens);
  out += ",\"total_tokens\":";
  json::AppendInteger(out, prompt_tokens + completion_tokens);
  out += '}';
}

void AppendLogprob(std::string& out, const TokenInfo& token, const std::vector<TokenInfo>& top) {
  AppendTextAndLogprob(out, token);
  out += ",\"top_logprobs\":[";
  for (std::size_t i = 0; i < top.size(); ++i) {
    if (i > 0) out += ',';
    AppendTextAndLogprob(out, top[i]);
    out += '}';
  }
  out += "]}";
}

}  // namespace penstock::router::tgi
