#include "router/api/openai/parts.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <span>

#include "router/json/unicode.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

// Infinities are not JSON; clients expect a very small number in their place.
float Logprob(const std::optional<float>& logprob) {
  const float value = logprob.value_or(-9999.0f);
  return std::isfinite(value) ? std::max(value, -9999.0f) : -9999.0f;
}

void AppendChatToken(std::string& out, const TokenInfo& token) {
  const auto append = [](std::string& list, char byte) {
    json::AppendInteger(list, static_cast<unsigned>(static_cast<unsigned char>(byte)));
  };
  json::AppendMembers(out, "token", token.text, "logprob", Logprob(token.logprob), "bytes",
                      json::Array(token.text, append));
}

}  // namespace

AnswerStyle MakeStyle(const ApiContext& context, bool chat, const std::string& request_id) {
  AnswerStyle style;
  style.chat = chat;
  style.id = (chat ? "chatcmpl-" : "cmpl-") + request_id;
  style.model = context.engine.Facts().served_name;
  style.created = static_cast<std::int64_t>(std::time(nullptr));
  style.fingerprint = "penstock-" + context.options.version;
  return style;
}

std::string AnswerPrefix(const AnswerStyle& style, std::string_view object) {
  std::string out = "{";
  json::AppendMembers(out, "id", style.id, "object", object, "created", style.created, "model",
                      style.model, "system_fingerprint", style.fingerprint);
  return out + ",\"choices\":[";
}

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
    case FinishReason::kStopToken:
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kLength:
    case FinishReason::kCancelled:
      break;
  }
  return "length";
}

void Usage::Add(const AnswerStyle& style, std::size_t choice, const GenerationEnd& end) {
  completion += end.generated_tokens;
  if (choice % style.choices_per_prompt != 0) return;
  prompt += end.prompt_tokens;
  cached += end.cached_tokens;
}

void AppendUsage(std::string& out, const Usage& usage) {
  json::AppendMembers(
      out, "usage",
      json::Object("prompt_tokens", usage.prompt, "completion_tokens", usage.completion,
                   "total_tokens", usage.prompt + usage.completion, "prompt_tokens_details",
                   json::Object("cached_tokens", usage.cached), "completion_tokens_details",
                   json::Object("reasoning_tokens", 0)));
}

void Logprobs::Add(const GenerationToken& token) {
  if (token.token.special) return;  // its text is never shown
  entries_.push_back(token);
  held_ = entries_.size();
}

std::string Logprobs::Take() {
  const std::size_t count = committed_;
  if (count == 0) return "null";
  std::string out = chat_ ? TakeChat(count) : TakeCompletion(count);
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count));
  committed_ = 0;
  held_ = entries_.size();
  return out;
}

std::string Logprobs::TakeChat(std::size_t count) const {
  const auto append_top = [](std::string& out, const TokenInfo& token) {
    out += '{';
    AppendChatToken(out, token);
    out += '}';
  };
  const auto append = [&](std::string& out, const GenerationToken& entry) {
    out += '{';
    AppendChatToken(out, entry.token);
    json::AppendMembers(out, "top_logprobs", json::Array(entry.top, append_top));
    out += '}';
  };
  return json::ObjectText("content", json::Array(std::span(entries_).first(count), append),
                          "refusal", nullptr);
}

std::string Logprobs::TakeCompletion(std::size_t count) {
  const auto entries = std::span(entries_).first(count);
  const auto text = [](std::string& out, const GenerationToken& entry) {
    json::AppendString(out, entry.token.text);
  };
  const auto logprob = [](std::string& out, const GenerationToken& entry) {
    json::AppendFloat(out, Logprob(entry.token.logprob));
  };
  const auto top = [](std::string& out, const GenerationToken& entry) {
    if (entry.top.empty()) return json::Append(out, nullptr);
    out += '{';
    for (const TokenInfo& token : entry.top) {
      json::AppendComma(out);
      json::AppendString(out, token.text);
      json::AppendFloat(out += ':', Logprob(token.logprob));
    }
    out += '}';
  };
  const auto offset = [this](std::string& out, const GenerationToken& entry) {
    json::AppendInteger(out, text_offset_);
    text_offset_ += json::CountCharacters(entry.token.text);
  };
  return json::ObjectText("tokens", json::Array(entries, text), "token_logprobs",
                          json::Array(entries, logprob), "top_logprobs", json::Array(entries, top),
                          "text_offset", json::Array(entries, offset));
}

}  // namespace penstock::router::openai
