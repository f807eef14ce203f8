#include "router/api/tgi/grammar/grammar.h"

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "router/api/tgi/grammar/schema_check.h"
#include "router/api/tgi/grammar/schema_regex.h"
#include "router/json/fields.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

using json::Value;

enum class Tag : std::uint8_t { kJson, kRegex, kJsonSchema };

struct SchemaConfig {
  std::optional<std::string> name;
  Value schema;
};

constexpr auto kSchemaConfig = std::array{
    json::MakeField<&SchemaConfig::name>("name", "a string"),
    json::MakeField<&SchemaConfig::schema>("schema", "a value", true),
};

bool ReadTag(json::Reader& reader, std::optional<Tag>& out) {
  std::string tag;
  if (!reader.ReadString(tag, "variant identifier")) return false;
  if (tag == "json" || tag == "json_object") {
    out = Tag::kJson;
  } else if (tag == "regex") {
    out = Tag::kRegex;
  } else if (tag == "json_schema") {
    out = Tag::kJsonSchema;
  } else {
    return reader.FailHere("unknown variant `" + tag +
                           "`, expected one of `json`, `json_object`, `regex`, `json_schema`");
  }
  return true;
}

bool ReadContent(json::Reader& reader, Tag tag, GrammarChoice& out) {
  if (tag == Tag::kRegex) {
    out.type = GrammarChoice::Type::kRegex;
    return reader.ReadString(out.regex, "a string");
  }
  out.type = GrammarChoice::Type::kJson;
  if (tag == Tag::kJson) return json::ReadValue(reader, out.schema, "a value");
  SchemaConfig config;
  if (!json::ReadObject<SchemaConfig>(reader, kSchemaConfig, config, "struct JsonSchemaConfig")) {
    return false;
  }
  out.schema = std::move(config.schema);
  out.wrapped = true;
  return true;
}

constexpr std::size_t kMaxSchemaBytes = std::size_t{256} << 10;

constexpr std::string_view kNotSupported = "grammar is not supported";

std::string NotValid(std::string_view why) { return "grammar is not valid: " + std::string(why); }

// Bytes of the names and texts; never more than those of the JSON.
std::size_t TextBytes(const Value& value) {
  std::size_t bytes = value.text.size() + 1;
  for (const Value& element : value.elements) bytes += TextBytes(element);
  for (const Value::Member& member : value.members) {
    bytes += member.first.size() + TextBytes(member.second);
  }
  return bytes;
}

Grammar::Written TooLarge(std::size_t bytes) {
  return NotValid("a schema must have at most " + std::to_string(kMaxSchemaBytes) +
                  " bytes. Given: at least " + std::to_string(bytes));
}

// A JSON schema becomes a regular expression, as in TGI's router.
Grammar::Written WriteSchema(const Value& schema) {
  const std::size_t bytes = TextBytes(schema);
  if (bytes > kMaxSchemaBytes) return TooLarge(bytes);
  if (const auto wrong = FindSchemaError(schema)) return NotValid(*wrong);
  if (schema.Find("properties") == nullptr) {
    return NotValid("Grammar must have a 'properties' field");
  }
  auto regex = SchemaToRegex(schema);
  if (!regex.ok()) {
    return "cannot compile regex from schema: " + std::string(regex.status().message());
  }
  return GrammarSpec{GrammarSpec::Kind::kRegex, *std::move(regex)};
}

Grammar::Written Write(const GrammarChoice& choice) {
  const Value& schema = choice.schema;
  if (choice.wrapped || schema.is(Value::Kind::kObject)) return WriteSchema(schema);
  if (!schema.is(Value::Kind::kString)) return std::string(kNotSupported);
  if (schema.text.size() > kMaxSchemaBytes) return TooLarge(schema.text.size());
  json::Reader reader(schema.text);
  Value parsed;
  if (!json::ReadValue(reader, parsed, "a value") || !reader.AtEnd()) {
    return NotValid(reader.error().Place());
  }
  return WriteSchema(parsed);
}

}  // namespace

bool ReadValue(json::Reader& reader, GrammarChoice& out, std::string_view expected) {
  if (!reader.EnterObject(expected)) return false;
  std::string key;
  std::optional<Tag> tag;
  std::optional<std::string_view> early;  // a content in front of its tag
  bool has_content = false;
  while (reader.NextKey(key)) {
    if ((key == "type" && tag) || (key == "value" && has_content)) {
      return reader.FailHere("duplicate field `" + key + "`");
    }
    if (!reader.Colon()) return false;
    if (key == "type") {
      if (!ReadTag(reader, tag)) return false;
    } else if (key == "value") {
      has_content = true;
      if (tag ? !ReadContent(reader, *tag, out) : !reader.ReadRaw(early.emplace())) return false;
    } else if (!reader.Skip()) {
      return false;
    }
  }
  if (!reader.ok()) return false;
  if (!tag) return reader.FailHere("missing field `type`");
  if (!has_content) return reader.FailHere("missing field `value`");
  if (!early) return true;
  json::Reader content(*early, reader.limits());
  return ReadContent(content, *tag, out) || reader.FailHere(content.error().what);
}

// Refuses a schema that is too large before it is copied.
Grammar LowerGrammar(const GrammarChoice& choice) {
  if (choice.type == GrammarChoice::Type::kRegex) {
    return {"regex " + choice.regex, [regex = choice.regex]() -> Grammar::Written {
              return GrammarSpec{GrammarSpec::Kind::kRegex, regex};
            }};
  }
  const std::size_t bytes = TextBytes(choice.schema);
  if (bytes > kMaxSchemaBytes) {
    return {"", [bytes] { return TooLarge(bytes); }};
  }
  return {(choice.wrapped ? "tgi json_schema " : "tgi json ") + json::ToText(choice.schema),
          [choice = std::make_shared<const GrammarChoice>(choice)] { return Write(*choice); }};
}

Grammar UnsupportedGrammar() {
  return {"", [] { return Grammar::Written(std::string(kNotSupported)); }};
}

}  // namespace penstock::router::tgi
