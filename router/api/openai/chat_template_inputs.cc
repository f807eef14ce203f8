#include "router/api/openai/chat_template_inputs.h"

#include <utility>

#include "router/api/openai/earlier_calls.h"
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

enum class ArgumentsAre : std::uint8_t { kObject, kNowObject, kText };

// Makes an object of arguments that are the text of one.
ArgumentsAre ReadArguments(Value& call) {
  Value* function = FindMember(call, "function");
  Value* arguments = function == nullptr ? nullptr : FindMember(*function, "arguments");
  if (arguments == nullptr || !arguments->is(Value::Kind::kString)) return ArgumentsAre::kObject;
  auto object = ParseValue(arguments->text.empty() ? "{}" : arguments->text);
  if (!object || !object->is(Value::Kind::kObject)) return ArgumentsAre::kText;
  *arguments = *std::move(object);
  return ArgumentsAre::kNowObject;
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

// The messages as a tree, unless they have nothing of what is looked at here.
std::optional<Value> TreeOf(const std::string& messages_json) {
  for (const std::string_view key : {"\"tool_calls\"", "\"tool_call_id\"", "\"reasoning\""}) {
    if (messages_json.find(key) != std::string::npos) return ParseValue(messages_json);
  }
  return std::nullopt;
}

TemplateMessages Adapted(Value messages, std::string messages_json, const answer::Format& format) {
  TemplateMessages out;
  bool changed = false;
  for (std::size_t i = 0; i < messages.elements.size(); ++i) {
    Value& message = messages.elements[i];
    changed = RenameReasoning(message) || changed;
    Value* calls = FindMember(message, "tool_calls");
    if (calls == nullptr) continue;
    out.calls += calls->elements.size();
    if (format.text_arguments) continue;
    for (std::size_t k = 0; k < calls->elements.size(); ++k) {
      const ArgumentsAre kind = ReadArguments(calls->elements[k]);
      changed |= kind == ArgumentsAre::kNowObject;
      if (kind != ArgumentsAre::kText || !out.text_arguments.empty()) continue;
      out.text_arguments = PlaceOfCall(i, k) + ".function.arguments";
    }
  }
  out.json = changed ? json::ToText(messages) : std::move(messages_json);
  return out;
}

}  // namespace

TemplateMessages MessagesForTemplate(const std::string& messages_json,
                                     const answer::Format& format) {
  auto messages = TreeOf(messages_json);
  if (!messages) return {.json = messages_json};
  return Adapted(*std::move(messages), messages_json, format);
}

std::variant<TemplateMessages, ApiError> MessagesOf(const ApiContext& context,
                                                    const ChatRequest& request) {
  const auto& own = request.chat_template;
  const bool has_developer = own ? own->text.find("developer") != std::string_view::npos
                                 : context.engine.Facts().template_has_developer;
  std::string text = has_developer ? request.messages.json : request.messages.WithSystemRoles();
  auto messages = TreeOf(text);
  if (!messages) return TemplateMessages{.json = std::move(text)};
  if (auto error = CheckEarlierCalls(*messages)) return *std::move(error);
  return Adapted(*std::move(messages), std::move(text), *context.options.answer_format);
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
