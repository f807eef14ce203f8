#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "router/api/openai/lower.h"
#include "router/json/reader.h"

namespace penstock::router::openai {
namespace {

constexpr std::string_view kField = "response_format";
constexpr std::string_view kAnyObject = R"({"type":"object"})";

ApiError Bad(std::string message) {
  return {ApiErrorKind::kValidation, std::move(message), std::string(kField)};
}

// The `schema` of TGI's {"name": …, "schema": …, "strict": …}.
std::optional<std::string_view> SchemaIn(std::string_view text) {
  std::optional<std::string_view> schema;
  json::Reader reader(text);
  std::string key;
  if (!reader.EnterObject("an object")) return std::nullopt;
  while (reader.NextKey(key) && reader.Colon()) {
    key == "schema" ? reader.ReadRaw(schema.emplace()) : reader.Skip();
  }
  return reader.ok() ? schema : std::nullopt;
}

Grammar MakeGrammar(GrammarSpec::Kind kind, std::string_view source) {
  std::string name = kind == GrammarSpec::Kind::kRegex ? "regex " : "schema ";
  return {name.append(source),
          [spec = GrammarSpec{kind, std::string(source)}]() -> Grammar::Written { return spec; }};
}

// A schema may also come as a string that holds its JSON.
std::variant<Grammar, ApiError> OfSchema(std::string_view schema) {
  if (!schema.starts_with('"')) return MakeGrammar(GrammarSpec::Kind::kJsonSchema, schema);
  std::string text;
  json::Reader reader(schema);
  if (!reader.ReadString(text, "a string")) return Bad("`response_format`: a broken string");
  return MakeGrammar(GrammarSpec::Kind::kJsonSchema, text);
}

std::variant<Grammar, ApiError> OfRegex(std::string_view value) {
  std::string regex;
  json::Reader reader(value);
  if (!reader.ReadString(regex, "a string")) {
    return Bad("`response_format.value` must be a string for the type `regex`");
  }
  return MakeGrammar(GrammarSpec::Kind::kRegex, regex);
}

}  // namespace

std::variant<Grammar, ApiError> LowerResponseFormat(const ResponseFormat& format) {
  if (format.type == "text") return Grammar{};
  if (format.type == "json_object" || format.type == "json") {
    const auto& schema = format.schema ? format.schema : format.value;
    return OfSchema(schema ? schema->text : kAnyObject);
  }
  if (format.type == "regex" && format.value) return OfRegex(format.value->text);
  if (format.type == "json_schema") {
    const auto& own = format.json_schema;
    if (own && own->schema) return OfSchema(own->schema->text);
    const auto schema = format.value ? SchemaIn(format.value->text) : std::nullopt;
    if (schema) return OfSchema(*schema);
    return Bad("`response_format.json_schema` must be an object with a `schema`");
  }
  return Bad("`response_format.type` must be text, json_object, json_schema or regex. Given: \"" +
             format.type + "\"");
}

}  // namespace penstock::router::openai
