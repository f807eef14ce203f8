#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "router/api/openai/grammar_forms.h"
#include "router/api/openai/lower.h"
#include "router/json/reader.h"

namespace penstock::router::openai {
namespace {

constexpr std::string_view kField = "response_format";
constexpr std::string_view kAnyObject = R"({"type":"object"})";

struct Format {
  std::string type;
  std::optional<std::string_view> wrapped;  // json_schema: an object with a `schema`
  std::optional<std::string_view> value;    // TGI's
  std::optional<std::string_view> grammar;  // of the type `grammar`
};

ApiError Bad(std::string message) {
  return {ApiErrorKind::kValidation, std::move(message), std::string(kField)};
}

std::variant<Format, ApiError> ReadFormat(std::string_view text) {
  Format format;
  json::Reader reader(text);
  if (!reader.EnterObject("an object")) return Bad("`response_format` must be an object");
  std::string key;
  while (reader.NextKey(key) && reader.Colon()) {
    if (key == "type") {
      reader.ReadString(format.type, "a string");
    } else if (key == "json_schema") {
      reader.ReadRaw(format.wrapped.emplace());
    } else if (key == "grammar") {
      reader.ReadRaw(format.grammar.emplace());
    } else if (key == "value") {
      reader.ReadRaw(format.value.emplace());
    } else {
      reader.Skip();
    }
  }
  if (!reader.ok()) return Bad("`response_format`: " + reader.error().Place());
  return format;
}

// The `schema` of {"name": …, "schema": …, "strict": …}.
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

}  // namespace

std::variant<Grammar, ApiError> LowerResponseFormat(const json::Raw& raw) {
  auto read = ReadFormat(raw.text);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  const Format& format = std::get<Format>(read);
  if (format.type == "text") return Grammar{};
  if (format.type == "json_object" || format.type == "json") {
    return SchemaGrammar(kField, format.value.value_or(kAnyObject));
  }
  if (format.type == "regex" && format.value) {
    return RegexGrammar("response_format.value", *format.value);
  }
  if (format.type == "grammar" && format.grammar) {
    return TextGrammar("response_format.grammar", *format.grammar);
  }
  if (format.type == "structural_tag") return TagGrammar(kField, raw.text);
  if (format.type == "json_schema") {
    const auto outer = format.wrapped ? format.wrapped : format.value;
    if (const auto schema = outer ? SchemaIn(*outer) : std::nullopt)
      return SchemaGrammar(kField, *schema);
    return Bad("`response_format.json_schema` must be an object with a `schema`");
  }
  return Bad(
      "`response_format.type` must be text, json_object, json_schema, regex, grammar or "
      "structural_tag. Given: \"" +
      format.type + "\"");
}

}  // namespace penstock::router::openai
