// Tools the way TGI offers them: the model is made to write {"function":{"_name":…,arguments}}.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "router/api/tgi/chat/chat_request.h"
#include "router/json/value.h"

namespace penstock::router::tgi {

inline constexpr std::string_view kNoTool = "no_tool";

struct OfferedTools {
  std::vector<Tool> tools;  // what the template sees; with choice auto one that says "no tool"
  json::Value schema;       // of the answer
};

// nullopt if the choice is none, or if it is required and there are no tools.
std::variant<std::optional<OfferedTools>, ApiError> OfferTools(const std::vector<Tool>& tools,
                                                               const ToolChoice& choice);

// As `tools` in a template (keys in the order of their names), and as text for one without.
std::string TemplateToolsJson(const std::vector<Tool>& tools);
std::string ToolsText(const std::vector<Tool>& tools);

// A call that the model wrote.
struct WrittenCall {
  std::string name;
  json::Value arguments;
};
std::variant<WrittenCall, ApiError> ReadCall(std::string_view text);
// The same for a call that is not complete yet: closes its braces and reads it.
std::optional<WrittenCall> ReadOpenCall(std::string_view text);

}  // namespace penstock::router::tgi
