#include "router/api/tgi/chat/chat_request.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "router/api/openai_keys.h"
#include "router/api/tgi/generate/request.h"
#include "router/json/schema.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {

bool ReadValue(json::Reader& reader, FunctionDefinition& out, std::string_view expected);
bool ReadValue(json::Reader& reader, ToolCall& out, std::string_view expected);

namespace {

using json::MakeField;
using json::Value;

constexpr auto kOwnChat = std::array{
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
constexpr auto kWithoutEffect =
    json::Join(kOpenAiChatKeysWithoutEffect<ChatRequest>,
               std::array{json::WithoutEffect<ChatRequest>("parallel_tool_calls"),
                          json::WithoutEffect<ChatRequest>("reasoning_effort")});
constexpr auto kChat = json::Join(kOwnChat, kWithoutEffect);

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
    json::WithoutEffect<StreamOptions>("include_obfuscation"),
};

constexpr auto kToolCall = std::array{
    MakeField<&ToolCall::id>("id", "a string", true),
    MakeField<&ToolCall::type>("type", "a string", true),
    MakeField<&ToolCall::function>("function", "struct FunctionDefinition", true),
};

// The string at the end of a path of keys; null if there is none.
const std::string* TextAt(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* found = &value;
  for (const std::string_view key : path) {
    found = found->Find(key);
    if (found == nullptr) return nullptr;
  }
  return found->is(Value::Kind::kString) ? &found->text : nullptr;
}

// A part of a content. Only the value that its type names counts.
struct Part {
  std::string type;
  json::Raw text;
  json::Raw image_url;
};

constexpr auto kPart = std::array{
    MakeField<&Part::type>("type", "a string", true),
    MakeField<&Part::text>("text", "a string"),
    MakeField<&Part::image_url>("image_url", "struct Url"),
};

// A text or an image, appended to `out`.
bool AppendPart(std::string_view source, std::string& out) {
  json::Reader reader(source, kLimits);
  Part part;
  if (!json::ReadObject<Part>(reader, kPart, part, "")) return false;
  const bool is_text = part.type == "text";
  if (!is_text && part.type != "image_url") return false;
  json::Reader inner(is_text ? part.text.text : part.image_url.text, kLimits);
  Value value;
  if (!json::ReadValue(inner, value, "")) return false;
  const std::string* text = is_text ? TextAt(value, {}) : TextAt(value, {"url"});
  if (text != nullptr) out += is_text ? *text : "![](" + *text + ")";
  return text != nullptr;
}

// A string, or a list of text and image parts.
bool ToContent(std::string_view text, std::string& out) {
  json::Reader reader(text, kLimits);
  if (reader.NextIs('"')) return reader.ReadString(out, "");
  std::vector<json::Raw> parts;
  if (!json::ReadValue(reader, parts, "")) return false;
  return std::ranges::all_of(parts, [&](json::Raw part) { return AppendPart(part.text, out); });
}

// The calls of an assistant, as text.
bool ToCalls(std::string_view text, Message& out) {
  json::Reader reader(text, kLimits);
  std::vector<ToolCall> calls;
  if (!json::ReadValue(reader, calls, "")) return false;
  for (const ToolCall& call : calls) out.call_ids.push_back(call.id);
  json::AppendArray(out.content, calls, [](std::string& list, const ToolCall& call) {
    json::AppendObject(list, "id", call.id, "type", call.type, "function",
                       [&](std::string& text) { AppendFunction(text, call.function); });
  });
  out.is_calls = true;
  return true;
}

bool FailBody(json::Reader& reader) {
  return reader.FailHere("data did not match any variant of untagged enum MessageBody");
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

bool ReadValue(json::Reader& reader, ToolCall& out, std::string_view) {
  return json::ReadObject<ToolCall>(reader, kToolCall, out, "struct ToolCall");
}

// As a flattened struct of serde: an error of role or name has its position, any other error that
// of the whole message.
bool ReadValue(json::Reader& reader, Message& out, std::string_view) {
  if (!reader.EnterObject("struct Message")) return false;
  std::string key;
  std::vector<std::string_view> contents;
  std::vector<std::string_view> calls;
  bool has_role = false;
  bool has_name = false;
  while (reader.NextKey(key)) {
    if ((key == "role" && has_role) || (key == "name" && has_name)) {
      return reader.FailHere("duplicate field `" + key + "`");
    }
    if (!reader.Colon()) return false;
    std::string_view other;
    if (key == "role") {
      has_role = true;
      if (!reader.ReadString(out.role, "a string")) return false;
    } else if (key == "name") {
      has_name = true;
      if (!json::ReadValue(reader, out.name, "a string")) return false;
    } else if (!reader.ReadRaw(other)) {
      return false;
    }
    if (key == "content") contents.push_back(other);
    if (key == "tool_calls") calls.push_back(other);
  }
  if (!reader.ok()) return false;
  if (!has_role) return reader.FailHere("missing field `role`");
  if (contents.size() == 1 && ToContent(contents.front(), out.content)) return true;
  return (calls.size() == 1 && ToCalls(calls.front(), out)) || FailBody(reader);
}

// null, "auto", "none", "required", the name of a function, or {"type":"function","function":{…}}.
bool ReadValue(json::Reader& reader, ToolChoice& out, std::string_view) {
  Value value;
  if (!json::ReadValue(reader, value, "")) return false;
  if (value.is(Value::Kind::kNull)) return true;
  out.kind = ToolChoice::Kind::kFunction;
  if (value.is(Value::Kind::kString)) {
    out.function = value.text;
    if (out.function == "auto") out.kind = ToolChoice::Kind::kAuto;
    if (out.function == "none") out.kind = ToolChoice::Kind::kNone;
    if (out.function == "required") out.kind = ToolChoice::Kind::kRequired;
    return true;
  }
  const std::string* type = TextAt(value, {"type"});
  const std::string* name = TextAt(value, {"function", "name"});
  if (type == nullptr || *type != "function" || name == nullptr) {
    return reader.FailShape("data did not match any variant of untagged enum ToolTypeDeserializer");
  }
  out.function = *name;
  return true;
}

void AppendChatSchema(std::string& out) {
  json::AppendSchema<ChatRequest>(out, "ChatRequest", kChat);
  json::AppendSchema<Tool>(out, "Tool", kTool);
  json::AppendSchema<FunctionDefinition>(out, "FunctionDefinition", kFunction);
  json::AppendSchema<StreamOptions>(out, "StreamOptions", kStreamOptions);
  // Messages are read by hand.
  out +=
      R"(,"Message":{"type":"object","required":["role"],"properties":{"role":{"type":"string"},)"
      R"("name":{"type":"string"},"content":{"anyOf":[{"type":"string"},{"type":"array",)"
      R"("items":{"type":"object"}}]},"tool_calls":{"type":"array","items":{"type":"object"}}}})";
}

Parsed<ChatRequest> ParseChat(std::string_view body) {
  return Parse(body, {.limits = kLimits}, kChat, "struct ChatRequest");
}

void AppendFunction(std::string& out, const FunctionDefinition& function) {
  json::AppendObject(out, "description", function.description, "name", function.name, "arguments",
                     json::ToText(function.arguments));
}

std::string MessagesJson(const std::vector<Message>& messages) {
  std::string out;
  json::AppendArray(out, messages, [](std::string& list, const Message& message) {
    json::AppendObject(list, "role", message.role, "content", message.content);
  });
  return out;
}

}  // namespace penstock::router::tgi
