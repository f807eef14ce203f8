#include "router/api/openai/chat_template_inputs.h"

#include <utility>

#include "router/json/reader.h"
#include "router/json/value.h"

namespace penstock::router::openai {
namespace {

using json::Value;

std::optional<Value> ParseValue(std::string_view text) {
  json::Reader reader(text);
  Value value;
  if (!json::ReadValue(reader, value, "a value") || !reader.AtEnd()) return std::nullopt;
  return value;
}

Value* FindMember(Value& object, std::string_view key) {
  for (auto& [name, value] : object.members) {
    if (name == key) return &value;
  }
  return nullptr;
}

// Returns whether it changed anything.
bool ReadArguments(Value& call) {
  Value* function = FindMember(call, "function");
  Value* arguments = function == nullptr ? nullptr : FindMember(*function, "arguments");
  if (arguments == nullptr || !arguments->is(Value::Kind::kString)) return false;
  auto object = ParseValue(arguments->text.empty() ? "{}" : arguments->text);
  if (!object || !object->is(Value::Kind::kObject)) return false;
  *arguments = *std::move(object);
  return true;
}

bool RenameReasoning(Value& message) {
  Value* reasoning = FindMember(message, "reasoning");
  if (reasoning == nullptr || FindMember(message, "reasoning_content") != nullptr) return false;
  Value text = std::move(*reasoning);
  message.Set("reasoning_content", std::move(text));
  return true;
}

std::string KnownEffort(const std::string& effort) {
  if (effort == "minimal") return "low";
  return effort == "xhigh" || effort == "max" ? "high" : effort;
}

}  // namespace

TemplateMessages MessagesForTemplate(const std::string& messages_json,
                                     const answer::Format& format) {
  const bool has_calls = messages_json.find("\"tool_calls\"") != std::string::npos;
  const bool has_reasoning = messages_json.find("\"reasoning\"") != std::string::npos;
  auto messages = has_calls || has_reasoning ? ParseValue(messages_json) : std::nullopt;
  if (!messages) return {messages_json};
  std::size_t count = 0;
  bool changed = false;
  for (Value& message : messages->elements) {
    changed = RenameReasoning(message) || changed;
    Value* calls = FindMember(message, "tool_calls");
    if (calls == nullptr) continue;
    count += calls->elements.size();
    if (format.text_arguments) continue;
    for (Value& call : calls->elements) changed = ReadArguments(call) || changed;
  }
  return {changed ? json::ToText(*messages) : messages_json, count};
}

TemplateMessages MessagesOf(const ApiContext& context, const ChatRequest& request) {
  const auto& own = request.chat_template;
  const bool has_developer = own ? own->text.find("developer") != std::string_view::npos
                                 : context.engine.Facts().template_has_developer;
  return MessagesForTemplate(
      has_developer ? request.messages.json : request.messages.WithSystemRoles(),
      *context.options.answer_format);
}

std::string VariablesForTemplate(const std::optional<json::Raw>& given,
                                 const std::optional<std::string>& reasoning_effort) {
  if (!reasoning_effort) return given ? std::string(given->text) : "";
  Value variables = Value::Object({});
  if (given) variables = ParseValue(given->text).value_or(std::move(variables));
  const bool none = *reasoning_effort == "none";
  const std::string_view key = none ? "enable_thinking" : "reasoning_effort";
  if (variables.Find(key) == nullptr) {
    variables.Set(key, none ? Value::Bool(false) : Value::String(KnownEffort(*reasoning_effort)));
  }
  return json::ToText(variables);
}

}  // namespace penstock::router::openai
