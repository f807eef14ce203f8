#include "router/api/tgi/chat/tools.h"

#include <algorithm>
#include <array>
#include <utility>

#include "router/json/fields.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {

struct Call {
  WrittenCall function;
};

bool ReadValue(json::Reader& reader, WrittenCall& out, std::string_view) {
  if (!reader.EnterObject("struct ToolCall")) return false;
  out.arguments = json::Value::Object({});
  std::string key;
  bool named = false;
  while (reader.NextKey(key)) {
    if (!reader.Colon()) return false;
    if (key == "_name") {
      named = true;
      if (!reader.ReadString(out.name, "a string")) return false;
      continue;
    }
    json::Value value;
    if (!json::ReadValue(reader, value, "a value")) return false;
    out.arguments.Set(key, std::move(value));
  }
  if (!reader.ok()) return false;
  return named || reader.FailHere("missing field `_name`");
}

namespace {

using json::Value;

constexpr auto kCall = std::array{
    json::MakeField<&Call::function>("function", "struct ToolCall", true),
};

Tool NoTool() {
  Tool tool;
  tool.type = "function";
  tool.function.name = kNoTool;
  tool.function.description = "Open ended response with no specific tool selected";
  tool.function.arguments = Value::Object({{"type", Value::String("object")}});
  return tool;
}

// The schema of a call of the function.
Value CallSchema(const FunctionDefinition& function) {
  Value schema = Value::Object({});
  schema.Set("description", Value::String(function.description.value_or("")));
  Value properties = Value::Object({});
  properties.Set("_name", Value::Object({{"type", Value::String("string")},
                                         {"const", Value::String(function.name)}}));
  Value required = Value::Array({Value::String("_name")});
  if (function.arguments.is(Value::Kind::kObject)) {
    if (const Value* own = function.arguments.Find("properties")) {
      for (const Value::Member& member : own->members) properties.Set(member.first, member.second);
    }
    if (const Value* own = function.arguments.Find("required")) {
      for (const Value& name : own->elements) required.elements.push_back(name);
    }
    // Only the string "true" counts, as in TGI.
    const Value* additional = function.arguments.Find("additionalProperties");
    const bool open =
        additional != nullptr && additional->is(Value::Kind::kString) && additional->text == "true";
    schema.Set("additionalProperties", Value::Bool(open));
  }
  schema.Set("properties", std::move(properties));
  schema.Set("required", std::move(required));
  return schema;
}

// As in TGI, `function` is optional. So a model may write {}, which is no call.
Value AnswerSchema(const std::vector<Tool>& tools) {
  Value functions = Value::Object({});
  Value references = Value::Array({});
  for (const Tool& tool : tools) {
    functions.Set(tool.function.name, CallSchema(tool.function));
    references.elements.push_back(
        Value::Object({{"$ref", Value::String("#/$functions/" + tool.function.name)}}));
  }
  Value function = Value::Object({{"anyOf", std::move(references)}});
  return Value::Object({{"$functions", std::move(functions)},
                        {"properties", Value::Object({{"function", std::move(function)}})}});
}

bool ParseCall(std::string_view text, WrittenCall& out, json::Error& error) {
  json::Reader reader(text);
  Call call;
  if (!json::ReadObject<Call>(reader, kCall, call, "struct Call") || !reader.AtEnd()) {
    error = reader.error();
    return false;
  }
  out = std::move(call.function);
  return true;
}

}  // namespace

std::variant<std::optional<OfferedTools>, ApiError> OfferTools(const std::vector<Tool>& tools,
                                                               const ToolChoice& choice) {
  OfferedTools offered;
  switch (choice.kind) {
    case ToolChoice::Kind::kNone:
      return std::optional<OfferedTools>();
    case ToolChoice::Kind::kFunction: {
      const auto found = std::find_if(tools.begin(), tools.end(), [&](const Tool& tool) {
        return tool.function.name == choice.function;
      });
      if (found == tools.end()) {
        return ApiError{ApiErrorKind::kTool, "Tool with name " + choice.function + " not found",
                        "tool_choice"};
      }
      offered.tools = {*found};
      break;
    }
    case ToolChoice::Kind::kRequired:
      offered.tools = tools;
      break;
    case ToolChoice::Kind::kAuto:
      offered.tools = tools;
      offered.tools.push_back(NoTool());
      break;
  }
  if (offered.tools.empty()) return std::optional<OfferedTools>();
  offered.schema = AnswerSchema(offered.tools);
  return std::optional<OfferedTools>(std::move(offered));
}

std::string TemplateToolsJson(const std::vector<Tool>& tools) {
  std::string out;
  json::AppendArray(out, tools, [](std::string& list, const Tool& tool) {
    const FunctionDefinition& function = tool.function;
    json::AppendObject(list, "function",
                       json::Object("arguments", json::ToText(function.arguments), "description",
                                    function.description, "name", function.name),
                       "type", tool.type);
  });
  return out;
}

std::string ToolsText(const std::vector<Tool>& tools) {
  std::string out;
  json::AppendArray(out, tools, [](std::string& list, const Tool& tool) {
    json::AppendObject(list, "type", tool.type, "function",
                       [&](std::string& text) { AppendFunction(text, tool.function); });
  });
  return out;
}

std::variant<WrittenCall, ApiError> ReadCall(std::string_view text) {
  WrittenCall call;
  json::Error error;
  if (ParseCall(text, call, error)) return call;
  std::string message = "Failed to parse generated text: " + error.Place() + " ";
  json::AppendString(message, text);
  return ApiError{ApiErrorKind::kTool, std::move(message), ""};
}

std::optional<WrittenCall> ReadOpenCall(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \n\t\r,}");
  const std::size_t size = last == text.npos ? 0 : last + 1;
  const std::string closed = std::string(text.substr(0, size)) + "}}";
  WrittenCall call;
  json::Error error;
  if (!ParseCall(closed, call, error)) return std::nullopt;
  return call;
}

}  // namespace penstock::router::tgi
