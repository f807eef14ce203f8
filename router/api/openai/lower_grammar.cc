// Which of a body's keys gives the grammar.
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "router/api/openai/grammar_forms.h"
#include "router/api/openai/lower.h"

namespace penstock::router::openai {
namespace {

// Keeps the grammar that is given. More than one contradict each other.
class OneOf {
 public:
  void Add(std::string_view field, std::function<GrammarOrError()> read) {
    if (read_) second_ = field;
    read_ = std::move(read);
  }

  void Add(std::string_view field, const std::optional<json::Raw>& raw,
           GrammarOrError (*form)(std::string_view field, std::string_view json)) {
    if (raw) Add(field, [field, text = raw->text, form] { return form(field, text); });
  }

  bool empty() const { return !read_; }

  GrammarOrError Lower() const {
    if (!read_) return Grammar{};
    if (second_.empty()) return read_();
    return Invalid(second_, "must be absent beside another grammar");
  }

 private:
  std::function<GrammarOrError()> read_;
  std::string_view second_;
};

GrammarOrError LowerStructuredOutputs(const StructuredOutputs& outputs) {
  OneOf one;
  one.Add("structured_outputs.json", outputs.json, SchemaGrammar);
  one.Add("structured_outputs.regex", outputs.regex, RegexGrammar);
  one.Add("structured_outputs.choice", outputs.choice, ChoiceGrammar);
  one.Add("structured_outputs.grammar", outputs.grammar, TextGrammar);
  one.Add("structured_outputs.structural_tag", outputs.structural_tag, TagGrammar);
  if (outputs.json_object) {
    one.Add("structured_outputs.json_object", json::Raw{R"({"type":"object"})"}, SchemaGrammar);
  }
  // Else a misspelt key would leave the answer free.
  if (one.empty()) {
    return Invalid("structured_outputs",
                   "must have one of json, regex, choice, grammar, structural_tag and json_object");
  }
  return one.Lower();
}

}  // namespace

GrammarOrError LowerGrammar(const GrammarKeys& keys) {
  OneOf one;
  if (const auto& format = keys.response_format) {
    one.Add("response_format", [&format] { return LowerResponseFormat(*format); });
  }
  if (const auto& outputs = keys.structured_outputs) {
    one.Add("structured_outputs", [&outputs] { return LowerStructuredOutputs(*outputs); });
  }
  one.Add("guided_json", keys.guided_json, SchemaGrammar);
  one.Add("guided_regex", keys.guided_regex, RegexGrammar);
  one.Add("guided_choice", keys.guided_choice, ChoiceGrammar);
  one.Add("guided_grammar", keys.guided_grammar, TextGrammar);
  return one.Lower();
}

bool HasGrammar(const GrammarKeys& keys) {
  return (keys.response_format && keys.response_format->type != "text") ||
         keys.structured_outputs || keys.guided_json || keys.guided_regex || keys.guided_choice ||
         keys.guided_grammar;
}

std::string_view GrammarKeyOf(const GrammarKeys& keys) {
  if (keys.structured_outputs) return "structured_outputs";
  if (keys.guided_json) return "guided_json";
  if (keys.guided_regex) return "guided_regex";
  if (keys.guided_choice) return "guided_choice";
  return keys.guided_grammar ? "guided_grammar" : "response_format";
}

}  // namespace penstock::router::openai
