#include "router/api/openai/tools.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "router/json/reader.h"
#include "router/json/value.h"

namespace penstock::router::openai {
namespace {

using json::Value;

constexpr std::string_view kChoiceField = "tool_choice";

// What tool_choice says.
struct Wanted {
  std::string mode = "auto";
  std::optional<std::vector<std::string>> names;  // absent: all tools
  bool named = false;
};

ApiError BadChoice(std::string_view given) {
  return MustBe(kChoiceField, "none, auto, required, a function or allowed_tools", given);
}

// {"type": "function", "function": {"name": …}}, or the name beside the type.
std::optional<std::string> NameIn(const Value& value) {
  const Value* function = value.Find("function");
  const Value* name = (function == nullptr ? value : *function).Find("name");
  if (name == nullptr || !name->is(Value::Kind::kString)) return std::nullopt;
  return name->text;
}

std::variant<Wanted, ApiError> ReadAllowed(const Value& choice) {
  const Value* inner = choice.Find("allowed_tools");
  const Value& allowed = inner == nullptr ? choice : *inner;
  const Value* mode = allowed.Find("mode");
  const Value* tools = allowed.Find("tools");
  Wanted wanted;
  if (mode != nullptr) wanted.mode = mode->text;
  if (wanted.mode != "auto" && wanted.mode != "required") {
    return MustBe("tool_choice.allowed_tools.mode", "auto or required",
                  json::DescribeString(wanted.mode));
  }
  wanted.names.emplace();
  if (tools == nullptr || tools->elements.empty()) {
    return MustBe("tool_choice.allowed_tools.tools", "at least one tool", "none");
  }
  for (const Value& tool : tools->elements) {
    auto name = NameIn(tool);
    if (!name) return MustBe("tool_choice.allowed_tools.tools", "tools with a name", "another");
    wanted.names->push_back(*std::move(name));
  }
  return wanted;
}

std::variant<Wanted, ApiError> ReadChoice(const std::optional<json::Raw>& raw) {
  Wanted wanted;
  if (!raw) return wanted;
  Value choice;
  json::Reader reader(raw->text);
  if (!json::ReadValue(reader, choice, "")) return BadChoice(json::DescribeString(raw->text));
  if (choice.is(Value::Kind::kString)) {
    wanted.mode = choice.text;
    const bool known = wanted.mode == "none" || wanted.mode == "auto" || wanted.mode == "required";
    if (!known) return BadChoice(json::DescribeString(wanted.mode));
    return wanted;
  }
  if (!choice.is(Value::Kind::kObject)) return BadChoice(raw->text.substr(0, 100));
  const Value* type = choice.Find("type");
  if (type == nullptr) return BadChoice("an object without `type`");
  if (type->text == "allowed_tools") return ReadAllowed(choice);
  auto name = NameIn(choice);
  if (type->text != "function" || !name) return BadChoice("another object");
  wanted.mode = "required";
  wanted.named = true;
  wanted.names = {*std::move(name)};
  return wanted;
}

std::variant<answer::ToolSet, ApiError> Selected(answer::ToolSet all, const Wanted& wanted) {
  if (!wanted.names) return all;
  std::vector<answer::Tool> selected;
  for (const std::string& name : *wanted.names) {
    const answer::Tool* tool = all.Find(name);
    if (tool == nullptr) {
      return MustBe(kChoiceField, "the name of a tool in `tools`", json::DescribeString(name));
    }
    selected.push_back(*tool);
  }
  return answer::ToolSet(std::move(selected));
}

}  // namespace

bool ToolChoice::NeedsGrammar() const {
  return tools != nullptr &&
         (required || std::ranges::any_of(tools->tools(), &answer::Tool::strict));
}

std::variant<ToolChoice, ApiError> ChooseTools(const ApiContext& context,
                                               const ChatRequest& request) {
  auto choice = ReadChoice(request.tool_choice);
  if (auto* error = std::get_if<ApiError>(&choice)) return std::move(*error);
  const Wanted& wanted = std::get<Wanted>(choice);
  if (wanted.mode == "none") return ToolChoice{};
  auto tools = request.tools ? answer::ParseTools(request.tools->text) : answer::ToolSet();
  if (!tools.ok()) {
    std::string text = "`tools" + Message(tools.status());
    const std::size_t end = text.find_first_of(" :");
    std::string field = text.substr(1, end - 1);
    text.insert(end, "`");
    return ApiError{ApiErrorKind::kValidation, std::move(text), std::move(field)};
  }
  if (tools->empty()) {
    if (wanted.mode == "auto") return ToolChoice{};
    return MustBe(kChoiceField, "none or auto without `tools`",
                  wanted.named ? "a function" : "required");
  }
  const answer::Format& format = *context.options.answer_format;
  if (format.header == nullptr) {
    return Unsupported("tools",
                       "need a chat template that shows how the model writes calls, or "
                       "--tool-format; with `tool_choice` `none` the template sees them");
  }
  auto selected = Selected(*std::move(tools), wanted);
  if (auto* error = std::get_if<ApiError>(&selected)) return std::move(*error);
  return ToolChoice{.tools = std::make_shared<const answer::ToolSet>(
                        std::get<answer::ToolSet>(std::move(selected))),
                    .required = wanted.mode == "required",
                    .named = wanted.named};
}

void RenameToolFields(ApiError& error, std::string_view schema) {
  const std::pair<std::string_view, std::string> names[] = {
      {"].function.parameters", "]." + std::string(schema)}, {"].function.", "]."}};
  for (std::string* text : {&error.message, &error.field}) {
    for (const auto& [nested, own] : names) {
      const std::size_t at = text->find(nested);
      if (at != text->npos) text->replace(at, nested.size(), own);
    }
  }
}

}  // namespace penstock::router::openai
