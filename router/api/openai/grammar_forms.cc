#include "router/api/openai/grammar_forms.h"

#include <utility>
#include <vector>

#include "router/api/openai/gbnf.h"
#include "router/json/fields.h"
#include "router/json/reader.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

Grammar Plain(std::string_view name, GrammarSpec::Kind kind, std::string source) {
  return {std::string(name) + source,
          [spec = GrammarSpec{kind, std::move(source)}]() -> Grammar::Written { return spec; }};
}

// The string that a raw value is.
std::variant<std::string, ApiError> StringOf(std::string_view field, std::string_view json) {
  std::string text;
  json::Reader reader(json);
  if (reader.ReadString(text, "a string")) return text;
  return MustBe(field, "a string", std::string(json.substr(0, 100)));
}

// The grammar that a string has. An empty one would leave the answer free.
std::variant<std::string, ApiError> SourceIn(std::string_view field, std::string_view json) {
  auto text = StringOf(field, json);
  const auto* read = std::get_if<std::string>(&text);
  if (read == nullptr || !read->empty()) return text;
  return MustBe(field, "a string that is not empty", "\"\"");
}

Grammar::Written LarkSpec(std::string source) {
  auto lark = LarkOfGbnf(source);
  if (auto* error = std::get_if<GbnfError>(&lark)) return "grammar is not valid: " + error->message;
  return GrammarSpec{GrammarSpec::Kind::kLark, std::get<std::string>(std::move(lark))};
}

}  // namespace

GrammarOrError SchemaGrammar(std::string_view field, std::string_view json) {
  constexpr std::string_view kName = "schema ";
  if (!json.starts_with('"')) {
    return Plain(kName, GrammarSpec::Kind::kJsonSchema, std::string(json));
  }
  auto text = SourceIn(field, json);
  if (auto* error = std::get_if<ApiError>(&text)) return std::move(*error);
  return Plain(kName, GrammarSpec::Kind::kJsonSchema, std::get<std::string>(std::move(text)));
}

GrammarOrError RegexGrammar(std::string_view field, std::string_view json) {
  auto text = StringOf(field, json);
  if (auto* error = std::get_if<ApiError>(&text)) return std::move(*error);
  return Plain("regex ", GrammarSpec::Kind::kRegex, std::get<std::string>(std::move(text)));
}

GrammarOrError ChoiceGrammar(std::string_view field, std::string_view json) {
  std::vector<std::string> choices;
  json::Reader reader(json);
  if (!json::ReadValue(reader, choices, "an array of strings") || choices.empty()) {
    return MustBe(field, "an array of at least one string", std::string(json.substr(0, 100)));
  }
  std::string lark = "start: ";
  for (const std::string& choice : choices) {
    if (&choice != &choices.front()) lark += " | ";
    json::AppendString(lark, choice);
  }
  return Plain("lark ", GrammarSpec::Kind::kLark, std::move(lark));
}

GrammarOrError TextGrammar(std::string_view field, std::string_view json) {
  auto read = SourceIn(field, json);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  auto& text = std::get<std::string>(read);
  if (text.find("::=") == text.npos) {
    return Plain("lark ", GrammarSpec::Kind::kLark, std::move(text));
  }
  return Grammar{"gbnf " + text, [text] { return LarkSpec(text); }};
}

}  // namespace penstock::router::openai
