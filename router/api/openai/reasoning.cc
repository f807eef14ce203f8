#include "router/api/openai/reasoning.h"

#include <string>
#include <string_view>

#include "router/json/reader.h"
#include "router/json/value.h"

namespace penstock::router::openai {
namespace {

using json::Value;

constexpr std::int64_t kGreatestBudget = 1'000'000;
constexpr std::string_view kLimit = "an integer from 0 to 1000000";
constexpr std::string_view kKey = "thinking_budget";

Value VariablesOf(const ChatRequest& request) {
  Value variables;
  if (!request.chat_template_kwargs) return variables;
  json::Reader reader(request.chat_template_kwargs->text);
  json::ReadValue(reader, variables, "an object");
  return variables;
}

bool IsSwitchedOff(const ChatRequest& request) {
  if (request.reasoning_effort == "none") return true;
  const Value variables = VariablesOf(request);
  for (const std::string_view key : {"enable_thinking", "thinking"}) {
    const Value* value = variables.Find(key);
    if (value != nullptr && value->is(Value::Kind::kBool) && !value->boolean) return true;
  }
  return false;
}

}  // namespace

std::variant<std::optional<std::uint32_t>, ApiError> ThinkingBudget(const ChatRequest& request) {
  std::optional<std::int64_t> budget = request.thinking_budget;
  std::string field(kKey);
  const Value variables = VariablesOf(request);
  const Value* variable = budget ? nullptr : variables.Find(kKey);
  if (variable != nullptr && !variable->is(Value::Kind::kNull)) {
    field = "chat_template_kwargs.thinking_budget";
    std::int64_t value = -1;
    const std::string text = json::ToText(*variable);
    json::Reader number(text);
    if (!variable->is(Value::Kind::kNumber) || !json::ReadValue(number, value, "an integer")) {
      return MustBe(field, kLimit, text.substr(0, 100));
    }
    budget = value;
  }
  if (!budget) return std::optional<std::uint32_t>();
  if (*budget < 0 || *budget > kGreatestBudget) {
    return MustBe(field, kLimit, std::to_string(*budget));
  }
  return std::optional(static_cast<std::uint32_t>(*budget));
}

ReasoningRule ReasoningOf(const ApiContext& context, const ChatRequest& request,
                          std::optional<std::uint32_t> budget, bool calls) {
  const answer::Format& format = *context.options.answer_format;
  ReasoningRule rule;
  rule.budget = budget;
  rule.may_open = context.options.reasons && !IsSwitchedOff(request);
  const bool marked = !calls && !format.answer_marker.empty() && !format.reasoning.empty();
  if (marked) {
    const std::string marker(format.answer_marker);
    const std::string first(format.reasoning.front().close);
    rule.markers.push_back({"", marker, first + std::string(format.call.role) + marker});
    return rule;
  }
  for (const answer::ReasoningMarkers& each : format.reasoning) {
    const std::string close(each.close);
    rule.markers.push_back({std::string(each.open), close, close});
  }
  return rule;
}

}  // namespace penstock::router::openai
