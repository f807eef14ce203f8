#include "router/api/tgi/generate/tokens.h"

#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

void AppendCommon(std::string& out, const TokenInfo& token) {
  out += "{\"id\":";
  json::AppendInteger(out, token.id);
  out += ",\"text\":";
  json::AppendString(out, token.text);
  out += ",\"logprob\":";
  if (token.logprob) {
    json::AppendFloat(out, *token.logprob);
  } else {
    out += "null";
  }
}

}  // namespace

void AppendToken(std::string& out, const TokenInfo& token) {
  AppendCommon(out, token);
  out += ",\"special\":";
  json::AppendBool(out, token.special);
  out += '}';
}

void AppendPrefillToken(std::string& out, const TokenInfo& token) {
  AppendCommon(out, token);
  out += '}';
}

void AppendTokens(std::string& out, const std::vector<TokenInfo>& tokens) {
  out += '[';
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out += ',';
    AppendToken(out, tokens[i]);
  }
  out += ']';
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

void AppendSeed(std::string& out, const GenerationEnd& end) {
  if (end.sampled) {
    json::AppendInteger(out, end.seed);
  } else {
    out += "null";
  }
}

}  // namespace penstock::router::tgi
