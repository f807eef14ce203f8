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
constexpr std::string_view kDeveloper = "developer";

constexpr auto kStreamOptions = std::array{
    json::MakeField<&StreamOptions::include_usage>("include_usage", "a boolean"),
    json::WithoutEffect<StreamOptions>("include_obfuscation"),
};

constexpr auto kJsonSchema = std::array{
    json::MakeField<&JsonSchemaFormat::name>("name", "a string"),
    json::MakeField<&JsonSchemaFormat::description>("description", "a string"),
    json::MakeField<&JsonSchemaFormat::strict>("strict", "a boolean"),
    json::MakeField<&JsonSchemaFormat::schema>("schema", "an object"),
};

constexpr auto kStructure = std::array{
    json::MakeField<&Structure::begin>("begin", "a string", true),
    json::MakeField<&Structure::schema>("schema", "an object"),
    json::MakeField<&Structure::end>("end", "a string", true),
};

template <class T>
constexpr auto kTag = std::array{
    json::MakeFieldOf<T, &StructuralTag::structures>("structures", "an array of objects"),
    json::MakeFieldOf<T, &StructuralTag::triggers>("triggers", "an array of strings"),
};

constexpr auto kTagWithType =
    json::Join(kTag<StructuralTag>, std::array{json::WithoutEffect<StructuralTag>("type")});

constexpr auto kResponseFormat =
    json::Join(kTag<ResponseFormat>,
               std::array{
                   json::MakeField<&ResponseFormat::type>("type", "a string"),
                   json::MakeField<&ResponseFormat::json_schema>("json_schema", "an object"),
                   json::MakeField<&ResponseFormat::schema>("schema", "an object"),
                   json::MakeField<&ResponseFormat::value>("value", "any value"),
                   json::MakeField<&ResponseFormat::grammar>("grammar", "a string"),
               });

constexpr auto kStructuredOutputs = std::array{
    json::MakeField<&StructuredOutputs::json>("json", "an object or a string"),
    json::MakeField<&StructuredOutputs::regex>("regex", "a string"),
    json::MakeField<&StructuredOutputs::choice>("choice", "an array of strings"),
    json::MakeField<&StructuredOutputs::grammar>("grammar", "a string"),
    json::MakeField<&StructuredOutputs::structural_tag>("structural_tag", "an object or a string"),
    json::MakeField<&StructuredOutputs::json_object>("json_object", "a boolean"),
};

// A list of parts as one string: the joined texts. Other parts are refused, and the error names
// them.
bool ReadParts(json::Reader& reader, std::string& out) {
  if (!reader.EnterArray("a string or an array of parts")) return false;
  std::string key, type, joined;
  std::optional<std::string> text;
  while (reader.NextElement()) {
    type = "text";
    text.reset();
    if (!reader.EnterObject("an object")) return false;
    while (reader.NextKey(key)) {
      if (!reader.Colon()) return false;
      if (key == "type") {
        if (!reader.ReadString(type, "a string")) return false;
      } else if (key == "text") {
        if (!reader.ReadString(text.emplace(), "a string")) return false;
      } else if (!reader.Skip()) {
        return false;
      }
    }
    if (!reader.ok()) return false;
    if (type != "text")
      return reader.FailValue(json::DescribeString(type),
                              "a part of type `text`: images, audio and files are not read");
    if (!text) return reader.FailHere("missing field `text`");
    joined += *text;
  }
  if (!reader.ok()) return false;
  json::AppendString(out, joined);
  return true;
}

bool ReadContent(json::Reader& reader, std::string& out) {
  if (reader.NextIs('[')) return ReadParts(reader, out);
  if (!reader.NextIs('"')) return reader.FailNext("a string or an array of parts");
  std::string_view raw;
  if (!reader.ReadRaw(raw)) return false;
  out += raw;
  return true;
}

// What decides whether a message needs a content.
struct MessageKeys {
  std::optional<std::string> role;
  std::size_t role_at = 0;       // where that stands in the text
  bool has_content = false;      // null is none
  std::size_t null_content = 0;  // where that stands in the text; 0: nowhere
  bool has_calls = false;
};

// A message of the assistant needs no content. Beside calls null stays, because templates tell it
// from an empty text; without them it would be printed.
bool CheckContent(json::Reader& reader, const MessageKeys& keys, std::string& out) {
  if (!keys.role) return reader.FailHere("missing field `role`");
  if (keys.has_content || keys.has_calls) return true;
  if (*keys.role != "assistant") return reader.FailHere("missing field `content`");
  if (keys.null_content != 0) {
    out.replace(keys.null_content, 4, "\"\"");
  } else {
    out += ",\"content\":\"\"";
  }
  return true;
}

bool ReadMessage(json::Reader& reader, Messages& messages) {
  std::string& out = messages.json;
  if (!reader.EnterObject("an object with `role` and `content`")) return false;
  out += '{';
  std::string key;
  MessageKeys keys;
  bool first = true;
  while (reader.NextKey(key)) {
    if (!first) out += ',';
    first = false;
    json::AppendString(out, key);
    out += ':';
    if (!reader.Colon()) return false;
    std::string_view raw;
    if (key == "content") {
      keys.null_content = reader.NextIs('n') ? out.size() : 0;
      keys.has_content = keys.null_content == 0;
      if (keys.has_content) {
        if (!ReadContent(reader, out)) return false;
        continue;
      }
    }
    if (key == "role") {
      if (!reader.ReadString(keys.role.emplace(), "a string")) return false;
      keys.role_at = out.size() + 1;
      json::AppendString(out, *keys.role);
      continue;
    }
    if (!reader.ReadRaw(raw)) return false;
    const bool calls = key == "tool_calls" || key == "function_call";
    keys.has_calls |= calls && raw != "null" && raw != "[]";
    out += raw;
  }
  if (!reader.ok() || !CheckContent(reader, keys, out)) return false;
  if (*keys.role == kDeveloper) messages.developer_roles.push_back(keys.role_at);
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

std::string Messages::WithSystemRoles() const {
  std::string text;
  std::size_t done = 0;
  for (const std::size_t at : developer_roles) {
    text.append(json, done, at - done).append("system");
    done = at + kDeveloper.size();
  }
  return text.append(json, done);
}

bool ReadValue(json::Reader& reader, Stop& out, std::string_view expected) {
  if (reader.NextIs('"')) return reader.ReadString(out.strings.emplace_back(), expected);
  return json::ReadValue(reader, out.strings, expected);
}

bool ReadValue(json::Reader& reader, EarlyStop& out, std::string_view expected) {
  if (reader.NextIs('"')) {
    std::string name;
    if (!reader.ReadString(name, expected)) return false;
    if (name != "never") return reader.FailValue(json::DescribeString(name), expected);
    out.rule = EarlyStopping::kNever;
    return true;
  }
  bool full = false;
  if (!reader.ReadBool(full, expected)) return false;
  out.rule = full ? EarlyStopping::kFull : EarlyStopping::kEstimate;
  return true;
}

bool ReadValue(json::Reader& reader, StreamOptions& out, std::string_view expected) {
  return json::ReadObject<StreamOptions>(reader, kStreamOptions, out, expected);
}

bool ReadValue(json::Reader& reader, JsonSchemaFormat& out, std::string_view expected) {
  if (!reader.NextIs('{')) return reader.FailNext(expected);
  return json::ReadObject<JsonSchemaFormat>(reader, kJsonSchema, out, expected);
}

bool ReadValue(json::Reader& reader, std::vector<Structure>& out, std::string_view expected) {
  if (!reader.EnterArray(expected)) return false;
  while (reader.NextElement()) {
    if (!json::ReadObject<Structure>(reader, kStructure, out.emplace_back(), "an object")) {
      return false;
    }
  }
  return reader.ok();
}

bool ReadValue(json::Reader& reader, StructuralTag& out, std::string_view expected) {
  return json::ReadObject<StructuralTag>(reader, kTagWithType, out, expected);
}

bool ReadValue(json::Reader& reader, ResponseFormat& out, std::string_view expected) {
  if (!reader.NextIs('{')) return reader.FailNext(expected);
  return json::ReadObject<ResponseFormat>(reader, kResponseFormat, out, expected);
}

bool ReadValue(json::Reader& reader, StructuredOutputs& out, std::string_view expected) {
  if (!reader.NextIs('{')) return reader.FailNext(expected);
  return json::ReadObject<StructuredOutputs>(reader, kStructuredOutputs, out, expected);
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
    if (!ReadMessage(reader, out)) return false;
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
