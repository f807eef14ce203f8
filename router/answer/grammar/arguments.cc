#include "router/answer/grammar/arguments.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "router/json/value.h"

namespace penstock::router::answer {
namespace {

using json::Value;

constexpr std::string_view kAnyName = "/[A-Za-z_][A-Za-z0-9_.\\-]*/";

struct Parameter {
  std::string name;  // empty: any
  bool required = false;
  ParameterTypes types = kAnyType;
  std::string schema;              // JSON
  std::vector<std::string> texts;  // of an enum of strings
};

// `part` of the schema `root` as a schema of its own, with the definitions of `root`.
std::string PartSchema(const Value& root, const Value& part) {
  Value schema = part.is(Value::Kind::kObject) ? part : Value::Object({});
  for (const std::string_view key : {"$defs", "definitions"}) {
    if (const Value* definitions = root.Find(key)) schema.Set(key, *definitions);
  }
  return json::ToText(schema);
}

std::vector<std::string> TextsOf(const Value& schema) {
  std::vector<std::string> texts;
  if (const Value* constant = schema.Find("const")) texts.push_back(constant->text);
  if (const Value* values = schema.Find("enum")) {
    for (const Value& value : values->elements) texts.push_back(value.text);
  }
  return texts;
}

bool IsRequired(const Value& root, std::string_view name) {
  const Value* required = root.Find("required");
  return required != nullptr &&
         std::ranges::find(required->elements, name, &Value::text) != required->elements.end();
}

std::vector<Parameter> AnyParameters() { return {Parameter{.schema = "{}"}}; }

std::vector<Parameter> ParametersOf(const Tool& tool) {
  std::vector<Parameter> parameters;
  const Value* properties = tool.parameters.Find("properties");
  const Value* others = tool.parameters.Find("additionalProperties");
  const bool closed = others != nullptr && others->is(Value::Kind::kBool) && !others->boolean;
  if (properties == nullptr) return closed ? parameters : AnyParameters();
  for (const auto& [name, schema] : properties->members) {
    Parameter& parameter = parameters.emplace_back();
    parameter.name = name;
    parameter.required = IsRequired(tool.parameters, name);
    parameter.types = tool.TypesOf(name);
    parameter.schema = PartSchema(tool.parameters, schema);
    if (parameter.types == kString) parameter.texts = TextsOf(schema);
  }
  return parameters;
}

std::string Json(std::string_view schema) { return "%json " + std::string(schema) + " "; }

std::string AnyOf(const LarkWriter& writer, const std::vector<std::string>& texts,
                  std::string_view after) {
  std::string out = "(";
  for (const std::string& text : texts) {
    if (&text != &texts.front()) out += "| ";
    out += writer.Literal(text + std::string(after));
  }
  return out + ") ";
}

// A value and `after`. A parameter that may be a string accepts any text, because the format has no
// quotes: the reader infers the type of a value from its text.
std::string TextValue(LarkWriter& writer, const Parameter& parameter, const std::string& after) {
  if (!parameter.texts.empty()) return AnyOf(writer, parameter.texts, after);
  if ((parameter.types & kString) != 0) return writer.TextUntil(after) + ' ';
  return Json(parameter.schema) + writer.Literal(after);
}

std::string TaggedArgument(LarkWriter& writer, const CallForm& form, const Parameter& parameter) {
  const ArgumentTags& tags = *form.tags;
  const std::string before(tags.before_name);
  std::string after_name(tags.after_name);
  if (tags.names_type) {
    const bool text = (parameter.types & kString) != 0;
    after_name += text ? " string=\"true\">" : " string=\"false\">";
  }
  if (!tags.before_value.empty()) after_name += "\n" + std::string(tags.before_value);
  const std::string line = form.lines ? "\n" : "";
  const std::string after = line + std::string(tags.after_value);
  const std::string head =
      parameter.name.empty()
          ? writer.Literal(before) + std::string(kAnyName) + ' ' + writer.Literal(after_name + line)
          : writer.Literal(before + parameter.name + after_name + line);
  return head + TextValue(writer, parameter, after) + "\"\\n\" ";
}

std::string TaggedArguments(LarkWriter& writer, const CallForm& form,
                            const std::vector<Parameter>& parameters) {
  std::string out;
  for (const Parameter& parameter : parameters) {
    const std::string rule = writer.Rule(TaggedArgument(writer, form, parameter));
    out += rule + (parameter.name.empty() ? "* " : parameter.required ? " " : "? ");
  }
  return out + writer.Literal(form.tags->end);
}

// Python's words; of other values the reader takes JSON.
std::string PythonValue(const Parameter& parameter) {
  if (parameter.types == kBoolean) return "(\"True\" | \"False\") ";
  if (parameter.types == kNull) return "\"None\" ";
  return Json(parameter.schema);
}

std::string ObjectValue(LarkWriter& writer, const Parameter& parameter, std::string_view quote) {
  if ((parameter.types & kString) == 0) return Json(parameter.schema);
  const std::string quoted =
      writer.Literal(quote) + TextValue(writer, parameter, std::string(quote));
  if (parameter.types == kString) return quoted;
  return "(" + quoted + "| " + Json(parameter.schema) + ") ";
}

std::string Pair(LarkWriter& writer, const CallForm& form, const Parameter& parameter) {
  const bool python = form.arguments == ArgumentForm::kPython;
  const std::string separator = python ? "=" : ":";
  const std::string head = parameter.name.empty()
                               ? std::string(kAnyName) + ' ' + writer.Literal(separator)
                               : writer.Literal(parameter.name + separator);
  return head + (python ? PythonValue(parameter) : ObjectValue(writer, parameter, form.quote));
}

// Pairs with commas between them. From the last to the first: what may follow where no pair stands
// before it, and where one does.
std::string Pairs(LarkWriter& writer, const CallForm& form, std::vector<Parameter> parameters) {
  const std::string comma = form.arguments == ArgumentForm::kPython ? "\", \" " : "\",\" ";
  std::ranges::stable_partition(parameters, &Parameter::required);
  std::string first = "\"\"";
  std::string rest;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Parameter& parameter = parameters[i];
    const std::string pair = writer.Rule(Pair(writer, form, parameter));
    const std::string more = "(" + comma + pair + ")";
    const std::string_view count = parameter.required ? " " : parameter.name.empty() ? "* " : "? ";
    const std::string begin = pair + ' ' + (parameter.name.empty() ? more + "* " : "") + rest;
    first = writer.Rule(parameter.required ? begin : begin + " | " + first);
    rest = writer.Rule(more + std::string(count) + rest);
  }
  return first + ' ';
}

std::string Part(LarkWriter& writer, const CallForm& form, std::vector<Parameter> parameters) {
  switch (form.arguments) {
    case ArgumentForm::kTags:
      return TaggedArguments(writer, form, parameters);
    case ArgumentForm::kPython:
      return Pairs(writer, form, std::move(parameters));
    case ArgumentForm::kObject:
      return "\"{\" " + Pairs(writer, form, std::move(parameters)) + "\"}\" ";
    case ArgumentForm::kJson:
      break;
  }
  return "";
}

}  // namespace

std::string SchemaOf(const Tool& tool) {
  Value schema = tool.parameters.is(Value::Kind::kObject) ? tool.parameters : Value::Object({});
  if (schema.Find("type") == nullptr) schema.Set("type", Value::String("object"));
  return json::ToText(schema);
}

std::string ArgumentsPart(LarkWriter& writer, const CallForm& form, const Tool& tool) {
  if (form.arguments == ArgumentForm::kJson) return Json(SchemaOf(tool));
  return Part(writer, form, ParametersOf(tool));
}

std::string FreeArgumentsPart(LarkWriter& writer, const CallForm& form) {
  if (form.arguments == ArgumentForm::kJson) return Json(R"({"type":"object"})");
  return Part(writer, form, AnyParameters());
}

}  // namespace penstock::router::answer
