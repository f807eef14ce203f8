#include "router/api/openai/logprobs.h"

#include <algorithm>
#include <cmath>
#include <optional>
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
