#include "router/api/openai/request.h"

#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "router/json/fields.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

constexpr std::size_t kMaxMessages = 4096;
constexpr std::size_t kMaxBiases = 1024;

constexpr auto kStreamOptions = std::array{
    json::MakeField<&StreamOptions::include_usage>("include_usage", "a boolean"),
    json::WithoutEffect<StreamOptions>("include_obfuscation"),
};

// A list of parts as one string: the joined texts. Other parts are refused, and the error names
// them.
bool ReadParts(json::Reader& reader, std::string& out) {
  if (!reader.EnterArray("a string or an array of parts")) return false;
  std::string key, type, text, joined;
  while (reader.NextElement()) {
    type = "text";
    text.clear();
    if (!reader.EnterObject("an object")) return false;
    while (reader.NextKey(key)) {
      if (!reader.Colon()) return false;
      if (key == "type") {
        if (!reader.ReadString(type, "a string")) return false;
      } else if (key == "text") {
        if (!reader.ReadString(text, "a string")) return false;
      } else if (!reader.Skip()) {
        return false;
      }
    }
    if (!reader.ok()) return false;
    if (type != "text")
      return reader.FailValue(json::DescribeString(type), "a part of type `text`");
    joined += text;
  }
  if (!reader.ok()) return false;
  json::AppendString(out, joined);
  return true;
}

bool ReadContent(json::Reader& reader, std::string& out) {
  if (reader.NextIs('[')) return ReadParts(reader, out);
  if (!reader.NextIs('"') && !reader.NextIs('n')) {
    return reader.FailNext("a string or an array of parts");
  }
  std::string_view raw;
  if (!reader.ReadRaw(raw)) return false;
  out += raw;
  return true;
}

bool ReadMessage(json::Reader& reader, std::string& out) {
  if (!reader.EnterObject("an object with `role` and `content`")) return false;
  out += '{';
  std::string key;
  bool has_role = false;
  bool first = true;
  while (reader.NextKey(key)) {
    if (!first) out += ',';
    first = false;
    json::AppendString(out, key);
    out += ':';
    if (!reader.Colon()) return false;
    std::string_view raw;
    if (key == "content") {
      if (!ReadContent(reader, out)) return false;
      continue;
    }
    if (key == "role") {
      has_role = true;
      if (!reader.NextIs('"')) return reader.FailNext("a string");
    }
    if (!reader.ReadRaw(raw)) return false;
    out += raw;
  }
  if (!reader.ok()) return false;
  if (!has_role) return reader.FailHere("missing field `role`");
  out += '}';
  return true;
}

bool ReadPrompt(json::Reader& reader, Prompts& out) {
  if (reader.NextIs('[')) {
    std::vector<TokenId> ids;
    if (!json::ReadValue(reader, ids, "an array of token ids")) return false;
    out.list.emplace_back(std::move(ids));
    return true;
  }
  std::string text;
  if (!reader.ReadString(text, "a string or an array of token ids")) return false;
  out.list.emplace_back(std::move(text));
  return true;
}

}  // namespace

bool ReadValue(json::Reader& reader, Stop& out, std::string_view expected) {
  if (reader.NextIs('"')) return reader.ReadString(out.strings.emplace_back(), expected);
  return json::ReadValue(reader, out.strings, expected);
}

bool ReadValue(json::Reader& reader, StreamOptions& out, std::string_view expected) {
  return json::ReadObject<StreamOptions>(reader, kStreamOptions, out, expected);
}

bool ReadValue(json::Reader& reader, LogitBias& out, std::string_view expected) {
  if (!reader.EnterObject(expected)) return false;
  std::string key;
  while (reader.NextKey(key)) {
    SamplingParams::LogitBias entry{};
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), entry.token);
    if ((error != std::errc() || end != key.data() + key.size()) && out.bad_key.empty()) {
      out.bad_key = key.empty() ? "\"\"" : key;
    }
    json::Number bias;
    if (!reader.Colon() || !reader.ReadNumber(bias, "a number from -100 to 100")) return false;
    if (!(bias.value >= -100 && bias.value <= 100)) {
      return reader.FailValue(json::Describe(bias), "a number from -100 to 100");
    }
    entry.bias = static_cast<float>(bias.value);
    if (out.entries.size() == kMaxBiases) {
      return reader.FailHere("`logit_bias` must have at most " + std::to_string(kMaxBiases) +
                             " entries");
    }
    out.entries.push_back(entry);
  }
  return reader.ok();
}

bool ReadValue(json::Reader& reader, Messages& out, std::string_view expected) {
  if (!reader.EnterArray(expected)) return false;
  out.json = "[";
  while (reader.NextElement()) {
    if (++out.count > kMaxMessages) {
      return reader.FailHere("`messages` must have at most " + std::to_string(kMaxMessages) +
                             " messages");
    }
    if (out.count > 1) out.json += ',';
    if (!ReadMessage(reader, out.json)) return false;
  }
  out.json += ']';
  return reader.ok();
}

// A string, an array of token ids, or an array of either.
bool ReadValue(json::Reader& reader, Prompts& out, std::string_view expected) {
  if (!reader.NextIs('[')) {
    if (!reader.NextIs('"')) return reader.FailNext(expected);
    return ReadPrompt(reader, out);
  }
  if (!reader.EnterArray(expected)) return false;
  std::optional<std::vector<TokenId>> ids;
  while (reader.NextElement()) {
    if (!ids && (reader.NextIs('"') || reader.NextIs('['))) {
      if (!ReadPrompt(reader, out)) return false;
      continue;
    }
    if (!out.list.empty()) return reader.FailNext("a string or an array of token ids");
    if (!ids) ids.emplace();
    if (!json::ReadValue(reader, ids->emplace_back(), "a token id")) return false;
  }
  if (ids) out.list.emplace_back(*std::move(ids));
  return reader.ok();
}

}  // namespace penstock::router::openai
