#include "router/api/tgi/chat_request.h"

#include <array>

#include "router/api/json/schema.h"
#include "router/api/json/writer.h"
#include "router/api/tgi/request.h"
#include "router/api/tgi/schemas.h"

namespace penstock::router::tgi {

bool ReadValue(json::Reader& reader, FunctionDefinition& out, std::string_view expected);

namespace {

using json::MakeField;
using json::Value;

// In the order of TGI's structs: an array is read as the fields in this order, as serde does.
constexpr auto kChat = std::array{
    MakeField<&ChatRequest::model>("model", "a string"),
    MakeField<&ChatRequest::messages>("messages", "a sequence", true),
    MakeField<&ChatRequest::frequency_penalty>("frequency_penalty", "f32"),
    MakeField<&ChatRequest::logit_bias>("logit_bias", "a sequence"),
    MakeField<&ChatRequest::logprobs>("logprobs", "a boolean"),
    MakeField<&ChatRequest::top_logprobs>("top_logprobs", "u32"),
    json::WithAlias(MakeField<&ChatRequest::max_tokens>("max_tokens", "u32"),
                    "max_completion_tokens"),
    MakeField<&ChatRequest::n>("n", "u32"),
    MakeField<&ChatRequest::presence_penalty>("presence_penalty", "f32"),
    MakeField<&ChatRequest::stop>("stop", "a sequence"),
    MakeField<&ChatRequest::stream>("stream", "a boolean"),
    MakeField<&ChatRequest::seed>("seed", "u64"),
    MakeField<&ChatRequest::temperature>("temperature", "f32"),
    MakeField<&ChatRequest::top_p>("top_p", "f32"),
    MakeField<&ChatRequest::tools>("tools", "a sequence"),
    MakeField<&ChatRequest::tool_prompt>("tool_prompt", "a string"),
    MakeField<&ChatRequest::tool_choice>("tool_choice", "a tool choice"),
    MakeField<&ChatRequest::response_format>("response_format",
                                             "adjacently tagged enum GrammarType"),
    MakeField<&ChatRequest::stream_options>("stream_options", "struct StreamOptions"),
};

constexpr auto kFunction = std::array{
    MakeField<&FunctionDefinition::description>("description", "a string"),
    MakeField<&FunctionDefinition::name>("name", "a string", true),
    json::WithAlias(MakeField<&FunctionDefinition::arguments>("arguments", "a value", true),
                    "parameters"),
};

constexpr auto kTool = std::array{
    MakeField<&Tool::type>("type", "a string", true),
    MakeField<&Tool::function>("function", "struct FunctionDefinition", true),
};

constexpr auto kStreamOptions = std::array{
    MakeField<&StreamOptions::include_usage>("include_usage", "a boolean"),
};

const Value* StringOf(const Value& object, std::string_view key) {
  const Value* value = object.Find(key);
  return value != nullptr && value->is(Value::Kind::kString) ? value : nullptr;
}

// A string, or a list of text and image parts.
bool ToContent(const Value& value, std::string& out) {
  if (value.is(Value::Kind::kString)) {
    out = value.text;
    return true;
  }
  if (!value.is(Value::Kind::kArray)) return false;
  for (const Value& part : value.elements) {
    const Value* type = StringOf(part, "type");
    if (type == nullptr) return false;
    if (type->text == "text") {
      const Value* text = StringOf(part, "text");
      if (text == nullptr) return false;
      out += text->text;
    } else if (type->text == "image_url") {
      const Value* image = part.Find("image_url");
      const Value* url = image != nullptr ? StringOf(*image, "url") : nullptr;
      if (url == nullptr) return false;
      out.append("![](").append(url->text).append(")");
    } else {
      return false;
    }
  }
  return true;
}

bool ToCall(const Value& value, ToolCall& out) {
  const Value* id = StringOf(value, "id");
  const Value* type = StringOf(value, "type");
  const Value* function = value.Find("function");
  const Value* name = function != nullptr ? StringOf(*function, "name") : nullptr;
  if (id == nullptr || type == nullptr || name == nullptr) return false;
  const Value* arguments = function->Find("arguments");
  const Value* alias = function->Find("parameters");
  if ((arguments == nullptr) == (alias == nullptr)) return false;
  const Value* description = function->Find("description");
  if (description != nullptr && description->is(Value::Kind::kString)) {
    out.function.description = description->text;
  } else if (description != nullptr && !description->is(Value::Kind::kNull)) {
    return false;
  }
  out.id = id->text;
  out.type = type->text;
  out.function.name = name->text;
  out.function.arguments = arguments != nullptr ? *arguments : *alias;
  return true;
}

// The calls of an assistant, as text.
bool ToCalls(const Value& value, Message& out) {
  if (!value.is(Value::Kind::kArray)) return false;
  std::string content = "[";
  std::vector<std::string> ids;
  for (const Value& element : value.elements) {
    ToolCall call;
    if (!ToCall(element, call)) return false;
    if (content.size() > 1) content += ',';
    content += "{\"id\":";
    json::AppendString(content, call.id);
    content += ",\"type\":";
    json::AppendString(content, call.type);
    content += ",\"function\":";
    AppendFunction(content, call.function);
    content += '}';
    ids.push_back(call.id);
  }
  out.content = content + "]";
  out.call_ids = std::move(ids);
  return true;
}

bool FailBody(json::Reader& reader) {
  return reader.FailObject("data did not match any variant of untagged enum MessageBody");
}

}  // namespace

bool ReadValue(json::Reader& reader, FunctionDefinition& out, std::string_view expected) {
  return json::ReadObject<FunctionDefinition>(reader, kFunction, out, expected);
}

bool ReadValue(json::Reader& reader, Tool& out, std::string_view) {
  return json::ReadObject<Tool>(reader, kTool, out, "struct Tool");
}

bool ReadValue(json::Reader& reader, StreamOptions& out, std::string_view expected) {
  return json::ReadObject<StreamOptions>(reader, kStreamOptions, out, expected);
}

// serde's flattened struct: role and name are read in their place, the body from what is left.
bool ReadValue(json::Reader& reader, Message& out, std::string_view) {
  if (!reader.EnterObject("struct Message")) return false;
  std::string key;
  Value rest;
  bool has_role = false;
  bool has_name = false;
  while (reader.NextKey(key)) {
    if (key == "role") {
      if (has_role) return reader.FailObject("duplicate field `role`");
      has_role = true;
      if (!reader.Colon() || !reader.ReadString(out.role, "a string")) return false;
    } else if (key == "name") {
      if (has_name) return reader.FailObject("duplicate field `name`");
      has_name = true;
      if (!reader.Colon() || !json::ReadValue(reader, out.name, "a string")) return false;
    } else {
      Value value;
      if (!reader.Colon() || !json::ReadValue(reader, value, "a value")) return false;
      rest.Set(key, std::move(value));
    }
  }
  if (!reader.ok()) return false;
  if (!has_role) return reader.FailObject("missing field `role`");
  const Value* content = rest.Find("content");
  if (content != nullptr && ToContent(*content, out.content)) return true;
  out.content.clear();
  const Value* calls = rest.Find("tool_calls");
  return (calls != nullptr && ToCalls(*calls, out)) || FailBody(reader);
}

// null, "auto", "none", "required", the name of a function, or {"type":"function","function":{…}}.
bool ReadValue(json::Reader& reader, ToolChoice& out, std::string_view) {
  Value value;
  if (!json::ReadValue(reader, value, "a value")) return false;
  const auto fail = [&reader] {
    return reader.FailShape("data did not match any variant of untagged enum ToolTypeDeserializer");
  };
  if (value.is(Value::Kind::kNull)) return true;
  if (value.is(Value::Kind::kString)) {
    out.kind = value.text == "auto"       ? ToolChoice::Kind::kAuto
               : value.text == "none"     ? ToolChoice::Kind::kNone
               : value.text == "required" ? ToolChoice::Kind::kRequired
                                          : ToolChoice::Kind::kFunction;
    out.function = value.text;
    return true;
  }
  const Value* type = StringOf(value, "type");
  const Value* function = value.Find("function");
  const Value* name = function != nullptr ? StringOf(*function, "name") : nullptr;
  if (type == nullptr || type->text != "function" || name == nullptr) return fail();
  out.kind = ToolChoice::Kind::kFunction;
  out.function = name->text;
  return true;
}

void AppendChatSchema(std::string& out) {
  json::AppendSchema<ChatRequest>(out, "ChatRequest", kChat);
  out += ',';
  json::AppendSchema<Tool>(out, "Tool", kTool);
  out += ',';
  json::AppendSchema<FunctionDefinition>(out, "FunctionDefinition", kFunction);
  out += ',';
  json::AppendSchema<StreamOptions>(out, "StreamOptions", kStreamOptions);
  // Messages are read by hand.
  out +=
      R"(,"Message":{"type":"object","required":["role"],"properties":{"role":{"type":"string"},)"
      R"("name":{"type":"string"},"content":{"anyOf":[{"type":"string"},{"type":"array",)"
      R"("items":{"type":"object"}}]},"tool_calls":{"type":"array","items":{"type":"object"}}}})";
}

ParsedChat ParseChat(std::string_view body) {
  ParsedChat parsed;
  json::Reader reader(body, kLimits);
  if (!json::ReadObject<ChatRequest>(reader, kChat, parsed.request, "struct ChatRequest")) {
    parsed.error = ToApiError(reader.error());
  }
  parsed.unknown_keys = reader.unknown_keys();
  return parsed;
}

void AppendFunction(std::string& out, const FunctionDefinition& function) {
  out += "{\"description\":";
  if (function.description) {
    json::AppendString(out, *function.description);
  } else {
    out += "null";
  }
  out += ",\"name\":";
  json::AppendString(out, function.name);
  out += ",\"arguments\":";
  json::AppendString(out, json::ToText(function.arguments));
  out += '}';
}

std::string MessagesJson(const std::vector<Message>& messages) {
  std::string out = "[";
  for (const Message& message : messages) {
    if (out.size() > 1) out += ',';
    out += "{\"role\":";
    json::AppendString(out, message.role);
    out += ",\"content\":";
    json::AppendString(out, message.content);
    out += '}';
  }
  return out + "]";
}

}  // namespace penstock::router::tgi
