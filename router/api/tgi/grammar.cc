#include "router/api/tgi/grammar.h"

#include <array>
#include <utility>

#include "router/api/json/fields.h"
#include "router/api/tgi/schema_check.h"
#include "router/api/tgi/schema_regex.h"

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
  if (!reader.ReadString(tag, "variant of enum GrammarType")) return false;
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

ApiError NotValid(std::string why) {
  return {ApiErrorKind::kValidation, "grammar is not valid: " + std::move(why), "grammar"};
}

}  // namespace

bool ReadValue(json::Reader& reader, GrammarChoice& out, std::string_view expected) {
  std::optional<Tag> tag;
  if (reader.NextIs('[')) {
    if (!reader.EnterArray(expected)) return false;
    std::size_t length = 0;
    if (reader.NextElement() && ReadTag(reader, tag) && ++length == 1 && reader.NextElement() &&
        ReadContent(reader, *tag, out) && ++length == 2 && reader.NextElement()) {
      return reader.FailObject("trailing characters");
    }
    return reader.ok() &&
           (length == 2 || reader.FailObject("invalid length " + std::to_string(length) +
                                             ", expected " + std::string(expected)));
  }
  if (!reader.EnterObject(expected)) return false;
  std::string key;
  std::optional<std::string_view> early;  // a content in front of its tag
  bool has_content = false;
  while (reader.NextKey(key)) {
    if (!reader.Colon()) return false;
    if (key == "type") {
      if (tag) return reader.FailObject("duplicate field `type`");
      if (!ReadTag(reader, tag)) return false;
    } else if (key == "value") {
      if (has_content) return reader.FailObject("duplicate field `value`");
      has_content = true;
      if (tag ? !ReadContent(reader, *tag, out) : !reader.ReadRaw(early.emplace())) return false;
    } else if (!reader.Skip()) {
      return false;
    }
  }
  if (!reader.ok()) return false;
  if (!tag) return reader.FailObject("missing field `type`");
  if (!has_content) return reader.FailObject("missing field `value`");
  if (!early) return true;
  json::Reader content(*early, reader.limits());
  return ReadContent(content, *tag, out) || reader.FailObject(content.error().what);
}

std::variant<Grammar, ApiError> LowerGrammar(const GrammarChoice& choice) {
  if (choice.type == GrammarChoice::Type::kRegex) {
    return Grammar{Grammar::Kind::kRegex, choice.regex};
  }
  Value schema = choice.schema;
  if (!choice.wrapped && schema.is(Value::Kind::kString)) {
    json::Reader reader(schema.text);
    Value parsed;
    if (!json::ReadValue(reader, parsed, "a value") || !reader.AtEnd()) {
      return NotValid(reader.error().Place());
    }
    schema = std::move(parsed);
  } else if (!choice.wrapped && !schema.is(Value::Kind::kObject)) {
    return ApiError{ApiErrorKind::kUnsupported, "grammar is not supported", "grammar"};
  }
  if (auto wrong = FindSchemaError(schema)) return NotValid(*std::move(wrong));
  if (schema.Find("properties") == nullptr) {
    return NotValid("Grammar must have a 'properties' field");
  }
  auto regex = SchemaToRegex(schema);
  if (auto* error = std::get_if<SchemaError>(&regex)) {
    return ApiError{ApiErrorKind::kValidation,
                    "cannot compile regex from schema: " + std::move(error->message), "grammar"};
  }
  return Grammar{Grammar::Kind::kRegex, std::get<std::string>(std::move(regex))};
}

}  // namespace penstock::router::tgi
