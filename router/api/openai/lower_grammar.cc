// Which of a body's keys gives the grammar.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "router/api/openai/grammar_forms.h"
#include "router/api/openai/lower.h"
#include "router/json/fields.h"
#include "router/json/reader.h"

namespace penstock::router::openai {
namespace {

struct StructuredOutputs {
  std::optional<json::Raw> json;
  std::optional<json::Raw> regex;
  std::optional<json::Raw> choice;
  std::optional<json::Raw> grammar;
  std::optional<json::Raw> structural_tag;
  bool json_object = false;
};

constexpr auto kStructuredOutputs = std::array{
    json::MakeField<&StructuredOutputs::json>("json", "an object or a string"),
    json::MakeField<&StructuredOutputs::regex>("regex", "a string"),
    json::MakeField<&StructuredOutputs::choice>("choice", "an array of strings"),
    json::MakeField<&StructuredOutputs::grammar>("grammar", "a string"),
    json::MakeField<&StructuredOutputs::structural_tag>("structural_tag", "an object or a string"),
    json::MakeField<&StructuredOutputs::json_object>("json_object", "a boolean"),
};

using Form = GrammarOrError (*)(std::string_view field, std::string_view json);

struct Given {
  std::string_view field;
  std::string_view json;
  Form form;
};

// Keeps the one that is given. More than one contradict each other.
class OneOf {
 public:
  void Add(std::string_view field, const std::optional<json::Raw>& raw, Form form) {
    if (!raw) return;
    if (given_) second_ = field;
    given_ = Given{field, raw->text, form};
  }

  GrammarOrError Lower() const {
    if (!given_) return Grammar{};
    if (second_.empty()) return given_->form(given_->field, given_->json);
    return ApiError{ApiErrorKind::kValidation,
                    "`" + std::string(second_) + "` must be absent beside another grammar",
                    std::string(second_)};
  }

 private:
  std::optional<Given> given_;
  std::string_view second_;
};

GrammarOrError OfStructuredOutputs(std::string_view field, std::string_view json) {
  StructuredOutputs outputs;
  json::Reader reader(json, {.null_is_absent = true});
  if (!json::ReadObject<StructuredOutputs>(reader, kStructuredOutputs, outputs, "an object")) {
    return ApiError{ApiErrorKind::kValidation,
                    "`" + std::string(field) + "`: " + reader.error().Text(), std::string(field)};
  }
  OneOf one;
  one.Add("structured_outputs.json", outputs.json, SchemaGrammar);
  one.Add("structured_outputs.regex", outputs.regex, RegexGrammar);
  one.Add("structured_outputs.choice", outputs.choice, ChoiceGrammar);
  one.Add("structured_outputs.grammar", outputs.grammar, TextGrammar);
  one.Add("structured_outputs.structural_tag", outputs.structural_tag, TagGrammar);
  if (outputs.json_object) {
    one.Add("structured_outputs.json_object", json::Raw{R"({"type":"object"})"}, SchemaGrammar);
  }
  return one.Lower();
}

GrammarOrError OfResponseFormat(std::string_view, std::string_view json) {
  return LowerResponseFormat({json});
}

}  // namespace

GrammarOrError LowerGrammar(const GrammarKeys& keys,
                            const std::optional<json::Raw>& response_format) {
  OneOf one;
  one.Add("response_format", response_format, OfResponseFormat);
  one.Add("structured_outputs", keys.structured_outputs, OfStructuredOutputs);
  one.Add("guided_json", keys.guided_json, SchemaGrammar);
  one.Add("guided_regex", keys.guided_regex, RegexGrammar);
  one.Add("guided_choice", keys.guided_choice, ChoiceGrammar);
  one.Add("guided_grammar", keys.guided_grammar, TextGrammar);
  return one.Lower();
}

std::string_view GrammarKeyOf(const Common& request) {
  if (request.structured_outputs) return "structured_outputs";
  if (request.guided_json) return "guided_json";
  if (request.guided_regex) return "guided_regex";
  if (request.guided_choice) return "guided_choice";
  return request.guided_grammar ? "guided_grammar" : "response_format";
}

}  // namespace penstock::router::openai
