#include "router/api/openai/logprobs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include "router/json/unicode.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

// Infinities are not JSON; clients expect a very small number in their place.
float Finite(float logprob) {
  return std::isfinite(logprob) ? std::max(logprob, -9999.0f) : -9999.0f;
}

// Null for a token that the grammar forced.
std::optional<float> Finite(std::optional<float> logprob) {
  return logprob ? std::optional(Finite(*logprob)) : std::nullopt;
}

void AppendChatToken(std::string& out, const TokenInfo& token) {
  const auto append = [](std::string& list, char byte) {
    json::AppendInteger(list, static_cast<unsigned>(static_cast<unsigned char>(byte)));
  };
  json::AppendMembers(out, "token", token.text, "logprob", Finite(token.logprob), "bytes",
                      json::Array(token.text, append));
}

// [{"token":…,"logprob":…,"bytes":…,"top_logprobs":[…]},…]
std::string ListOf(std::span<const GenerationToken> entries) {
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
  std::string out;
  json::AppendArray(out, entries, append);
  return out;
}

bool Holds(std::span<const TokenInfo> tokens, TokenId id) {
  return std::ranges::any_of(tokens, [id](const TokenInfo& token) { return token.id == id; });
}

// {"text":logprob,…} of the alternatives and the token itself. Of tokens with the same text the
// most probable one counts: readers of JSON would take the last.
void AppendTextTop(std::string& out, const GenerationToken& entry) {
  // The first of a prompt, or a token that the grammar forced.
  if (!entry.token.logprob) return json::Append(out, nullptr);
  std::vector<std::string_view> written;
  const auto append = [&](const TokenInfo& token) {
    if (std::ranges::find(written, token.text) != written.end()) return;
    written.push_back(token.text);
    json::AppendComma(out);
    json::AppendString(out, token.text);
    json::AppendFloat(out += ':', Finite(token.logprob.value_or(-9999.0f)));
  };
  out += '{';
  for (const TokenInfo& token : entry.top) append(token);
  if (!Holds(entry.top, entry.token.id)) append(entry.token);
  out += '}';
}

// "id":{"logprob":…,"rank":…,"decoded_token":…}
void AppendRanked(std::string& out, const TokenInfo& token, std::uint32_t rank) {
  json::AppendComma(out);
  json::AppendString(out, std::to_string(token.id));
  out += ":{";
  json::AppendMembers(out, "logprob", Finite(token.logprob.value_or(-9999.0f)), "rank", rank,
                      "decoded_token", token.text);
  out += '}';
}

}  // namespace

void Logprobs::AddPromptBefore(const GenerationStart& start, std::size_t top_n) {
  std::vector<GenerationToken> prompt(start.prompt.size());
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    GenerationToken& entry = prompt[i];
    entry.token = start.prompt[i];
    if (i >= start.prompt_alternatives.size()) continue;
    const std::vector<TokenInfo>& top = start.prompt_alternatives[i].top;
    entry.top.assign(top.begin(),
                     top.begin() + static_cast<std::ptrdiff_t>(std::min(top_n, top.size())));
  }
  entries_.insert(entries_.begin(), std::make_move_iterator(prompt.begin()),
                  std::make_move_iterator(prompt.end()));
  committed_ += prompt.size();
  held_ += prompt.size();
}

void Logprobs::Add(const GenerationToken& token) {
  if (token.token.special && !echo_) return;  // its text is never shown
  entries_.push_back(token);
  held_ = entries_.size();
}

std::string Logprobs::Take() {
  const std::size_t count = committed_;
  if (count == 0) return "null";
  std::string out =
      chat_ ? json::ObjectText("content", json::Raw{ListOf(std::span(entries_).first(count))},
                               "refusal", nullptr)
            : TakeCompletion(count);
  Remove(count);
  return out;
}

std::string Logprobs::TakeList(std::size_t bytes) {
  const std::size_t count = committed_;
  std::size_t first = count;
  std::size_t covered = 0;
  // A token of the first bytes of a character has no text; it belongs to the one that has it.
  while (first > 0 && (covered < bytes || entries_[first - 1].token.text.empty())) {
    covered += entries_[--first].token.text.size();
  }
  std::string out = ListOf(std::span(entries_).subspan(first, count - first));
  Remove(count);
  return out;
}

void Logprobs::Remove(std::size_t count) {
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count));
  committed_ = 0;
  held_ = entries_.size();
}

std::string Logprobs::TakeCompletion(std::size_t count) {
  const auto entries = std::span(entries_).first(count);
  const auto text = [](std::string& out, const GenerationToken& entry) {
    json::AppendString(out, entry.token.text);
  };
  const auto logprob = [](std::string& out, const GenerationToken& entry) {
    if (!entry.token.logprob) return json::Append(out, nullptr);  // the first of a prompt
    json::AppendFloat(out, Finite(*entry.token.logprob));
  };
  const auto offset = [this](std::string& out, const GenerationToken& entry) {
    json::AppendInteger(out, text_offset_);
    if (!entry.token.special) text_offset_ += json::CountCharacters(entry.token.text);
  };
  return json::ObjectText("tokens", json::Array(entries, text), "token_logprobs",
                          json::Array(entries, logprob), "top_logprobs",
                          json::Array(entries, AppendTextTop), "text_offset",
                          json::Array(entries, offset));
}

std::string PromptLogprobsText(const GenerationStart& start, std::size_t top_n) {
  std::string out = "[";
  for (std::size_t i = 0; i < start.prompt.size(); ++i) {
    const TokenInfo& own = start.prompt[i];
    if (i > 0) out += ',';
    if (!own.logprob || i >= start.prompt_alternatives.size()) {
      out += "null";
      continue;
    }
    const GenerationStart::Alternatives& others = start.prompt_alternatives[i];
    out += '{';
    AppendRanked(out, own, others.rank);
    for (std::size_t k = 0; k < std::min(top_n, others.top.size()); ++k) {
      if (others.top[k].id == own.id) continue;
      AppendRanked(out, others.top[k], static_cast<std::uint32_t>(k) + 1);
    }
    out += '}';
  }
  return out + "]";
}

}  // namespace penstock::router::openai
