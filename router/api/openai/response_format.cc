#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "router/api/openai/grammar_forms.h"
#include "router/api/openai/lower.h"
#include "router/json/reader.h"

namespace penstock::router::openai {
namespace {

constexpr std::string_view kFormatField = "response_format";
constexpr std::string_view kAnyObject = R"({"type":"object"})";

ApiError Bad(std::string message) {
  return {ApiErrorKind::kValidation, std::move(message), std::string(kFormatField)};
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

}  // namespace

GrammarOrError LowerResponseFormat(const ResponseFormat& format) {
  if (format.type == "text") return Grammar{};
  if (format.type == "json_object" || format.type == "json") {
    const auto& schema = format.schema ? format.schema : format.value;
    return SchemaGrammar(kFormatField, schema ? schema->text : kAnyObject);
  }
  if (format.type == "regex") {
    if (!format.value) return Invalid("response_format.value", "is missing");
    return RegexGrammar("response_format.value", format.value->text);
  }
  if (format.type == "grammar") {
    if (!format.grammar) return Invalid("response_format.grammar", "is missing");
    return TextGrammar("response_format.grammar", format.grammar->text);
  }
  if (format.type == "structural_tag") return TagGrammar(kFormatField, format);
  if (format.type == "json_schema") {
    const auto& own = format.json_schema;
    if (own && own->schema) return SchemaGrammar(kFormatField, own->schema->text);
    const auto schema = format.value ? SchemaIn(format.value->text) : std::nullopt;
    if (schema) return SchemaGrammar(kFormatField, *schema);
    return Bad("`response_format.json_schema` must be an object with a `schema`");
  }
  return Bad(
      "`response_format.type` must be text, json_object, json_schema, regex, grammar or "
      "structural_tag. Given: \"" +
      format.type + "\"");
}

}  // namespace penstock::router::openai
