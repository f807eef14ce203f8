#include "router/api/openai/parts.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "router/json/unicode.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

// Infinities are not JSON; clients expect a very small number in their place.
void AppendLogprob(std::string& out, const std::optional<float>& logprob) {
  const float value = logprob.value_or(-9999.0f);
  json::AppendFloat(out, std::isfinite(value) ? std::max(value, -9999.0f) : -9999.0f);
}

void AppendChatToken(std::string& out, const TokenInfo& token) {
  out += "{\"token\":";
  json::AppendString(out, token.text);
  out += ",\"logprob\":";
  AppendLogprob(out, token.logprob);
  out += ",\"bytes\":[";
  for (std::size_t i = 0; i < token.text.size(); ++i) {
    if (i > 0) out += ',';
    json::AppendInteger(out, static_cast<unsigned>(static_cast<unsigned char>(token.text[i])));
  }
  out += ']';
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
  std::string out = "{\"id\":";
  json::AppendString(out, style.id);
  out += ",\"object\":";
  json::AppendString(out, object);
  out += ",\"created\":";
  json::AppendInteger(out, style.created);
  out += ",\"model\":";
  json::AppendString(out, style.model);
  out += ",\"system_fingerprint\":";
  json::AppendString(out, style.fingerprint);
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
  out += "\"usage\":{\"prompt_tokens\":";
  json::AppendInteger(out, usage.prompt);
  out += ",\"completion_tokens\":";
  json::AppendInteger(out, usage.completion);
  out += ",\"total_tokens\":";
  json::AppendInteger(out, usage.prompt + usage.completion);
  out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
  json::AppendInteger(out, usage.cached);
  out += "},\"completion_tokens_details\":{\"reasoning_tokens\":0}}";
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
  std::string out = "{\"content\":[";
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    AppendChatToken(out, entries_[i].token);
    out += ",\"top_logprobs\":[";
    for (std::size_t j = 0; j < entries_[i].top.size(); ++j) {
      if (j > 0) out += ',';
      AppendChatToken(out, entries_[i].top[j]);
      out += '}';
    }
    out += "]}";
  }
  return out + "],\"refusal\":null}";
}

std::string Logprobs::TakeCompletion(std::size_t count) {
  std::string tokens, logprobs, top, offsets;
  for (std::size_t i = 0; i < count; ++i) {
    const GenerationToken& entry = entries_[i];
    const char* comma = i > 0 ? "," : "";
    json::AppendString(tokens += comma, entry.token.text);
    AppendLogprob(logprobs += comma, entry.token.logprob);
    json::AppendInteger(offsets += comma, text_offset_);
    text_offset_ += json::CountCharacters(entry.token.text);
    top += comma;
    if (entry.top.empty()) {
      top += "null";
      continue;
    }
    top += '{';
    for (std::size_t j = 0; j < entry.top.size(); ++j) {
      json::AppendString(top += j > 0 ? "," : "", entry.top[j].text);
      AppendLogprob(top += ':', entry.top[j].logprob);
    }
    top += '}';
  }
  return "{\"tokens\":[" + tokens + "],\"token_logprobs\":[" + logprobs + "],\"top_logprobs\":[" +
         top + "],\"text_offset\":[" + offsets + "]}";
}

}  // namespace penstock::router::openai
