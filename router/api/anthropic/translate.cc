#include "router/api/anthropic/translate.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "router/api/anthropic/messages_writer.h"
#include "router/api/openai/tools.h"
#include "router/json/writer.h"

namespace penstock::router::anthropic {
namespace {

using Check = std::optional<ApiError>;

std::string_view FormatField(const Request& request) {
  return request.output_format ? "output_format" : "output_config.format";
}

const OutputFormat* FormatOf(const Request& request) {
  if (request.output_format) return &*request.output_format;
  if (!request.output_config || !request.output_config->format) return nullptr;
  return &*request.output_config->format;
}

template <class T>
void AppendGiven(std::string& out, std::string_view key, const std::optional<T>& value) {
  if (value) json::AppendMembers(out, key, *value);
}

Check CheckTool(const Tool& tool, const std::string& path) {
  if (tool.type != "custom") {
    ApiError error = MustBe(path + ".type", "custom: this server runs no tools itself",
                            json::DescribeString(tool.type));
    error.kind = ApiErrorKind::kUnsupported;
    return error;
  }
  if (!tool.input_schema) return Invalid(path + ".input_schema", "is missing");
  return std::nullopt;
}

void AppendTool(std::string& out, const Tool& tool) {
  out += "{\"type\":\"function\",\"function\":{";
  json::AppendMembers(out, "name", tool.name);
  AppendGiven(out, "description", tool.description);
  json::AppendMembers(out, "parameters", *tool.input_schema);
  AppendGiven(out, "strict", tool.strict);
  out += "}}";
}

Check AppendTools(std::string& out, const Request& request) {
  std::string tools;
  for (const Tool& tool : request.tools.list) {
    const auto index = static_cast<std::size_t>(&tool - request.tools.list.data());
    if (auto error = CheckTool(tool, "tools[" + std::to_string(index) + "]")) return error;
    json::AppendComma(tools);
    AppendTool(tools, tool);
  }
  if (!tools.empty()) json::AppendMembers(out, "tools", json::Raw{"[" + tools + "]"});
  return std::nullopt;
}

Check AppendToolChoice(std::string& out, const Request& request) {
  if (!request.tool_choice) return std::nullopt;
  const ToolChoice& choice = *request.tool_choice;
  if (choice.type == "auto" || choice.type == "none") {
    json::AppendMembers(out, "tool_choice", choice.type);
  } else if (choice.type == "any") {
    json::AppendMembers(out, "tool_choice", "required");
  } else if (choice.type == "tool") {
    json::AppendMembers(
        out, "tool_choice",
        json::Object("type", "function", "function", json::Object("name", choice.name)));
  } else {
    return MustBe("tool_choice.type", "auto, any, tool or none", json::DescribeString(choice.type));
  }
  if (choice.disable_parallel_tool_use) json::AppendMembers(out, "parallel_tool_calls", false);
  return std::nullopt;
}

// Templates call the variable enable_thinking or thinking.
Check AppendThinking(std::string& out, const Request& request) {
  if (request.thinking) {
    const std::string& type = request.thinking->type;
    if (type != "enabled" && type != "disabled" && type != "adaptive" && type != "between_tools") {
      return MustBe("thinking.type", "enabled, disabled, adaptive or between_tools",
                    json::DescribeString(type));
    }
    if (type == "enabled" && !request.thinking->budget_tokens) {
      return Invalid("thinking.budget_tokens", "is missing");
    }
    if (request.thinking->budget_tokens == 0u) {
      return MustBe("thinking.budget_tokens", "at least 1", "0");
    }
    if (type == "enabled") AppendGiven(out, "thinking_budget", request.thinking->budget_tokens);
  }
  const bool on = AsksForThinking(request);
  if (on && request.output_config) {
    AppendGiven(out, "reasoning_effort", request.output_config->effort);
  }
  json::AppendMembers(out, "chat_template_kwargs",
                      json::Object("enable_thinking", on, "thinking", on));
  return std::nullopt;
}

Check AppendFormat(std::string& out, const Request& request) {
  const OutputFormat* format = FormatOf(request);
  if (format == nullptr) return std::nullopt;
  const std::string field(FormatField(request));
  if (format->type != "json_schema") {
    return MustBe(field + ".type", "json_schema", json::DescribeString(format->type));
  }
  if (!format->schema) return Invalid(field + ".schema", "is missing");
  json::AppendMembers(out, "response_format",
                      json::Object("type", "json_schema", "json_schema",
                                   json::Object("name", "output", "schema", *format->schema)));
  return std::nullopt;
}

void AppendSampling(std::string& out, const Request& request) {
  AppendGiven(out, "max_tokens", request.max_tokens);
  AppendGiven(out, "temperature", request.temperature);
  AppendGiven(out, "top_p", request.top_p);
  AppendGiven(out, "top_k", request.top_k);
  if (request.stop_sequences.empty()) return;
  json::AppendMembers(out, "stop",
                      json::Array(request.stop_sequences, [](std::string& text, const auto& stop) {
                        json::AppendString(text, stop);
                      }));
}

Check AddMessages(MessagesWriter& writer, const Request& request) {
  if (request.messages.list.empty()) return Invalid("messages", "must have at least one message");
  if (request.messages.list.back().role == "assistant") {
    return Invalid("messages",
                   "must end with a message of the user: this server does not continue a message "
                   "of the assistant (prefill)");
  }
  if (!request.system.blocks.empty()) {
    if (auto error = writer.AddSystem(request.system)) return error;
  }
  for (const Tool& tool : request.tools.list) {
    if (tool.cache_control) writer.Keep();
  }
  for (std::size_t i = 0; i < request.messages.list.size(); ++i) {
    if (auto error = writer.Add(request.messages.list[i], i)) return error;
  }
  writer.Finish();
  return std::nullopt;
}

}  // namespace

std::variant<Translated, ApiError> Translate(const Request& request) {
  if (!request.mcp_servers.empty()) return Unsupported("mcp_servers", "are not supported");
  // A client that names a thread sends only new messages. Without support, the answer would be
  // computed from a part of the conversation.
  if (request.thread) {
    return Unsupported(kThread, "is not supported: send the whole conversation with each request");
  }
  MessagesWriter writer;
  if (auto error = AddMessages(writer, request)) return *std::move(error);
  std::string out = "{";
  json::AppendMembers(out, "model", request.model, "messages", json::Raw{writer.All()}, "stream",
                      request.stream);
  AppendSampling(out, request);
  for (const auto append : {AppendTools, AppendToolChoice, AppendThinking, AppendFormat}) {
    if (auto error = append(out, request)) return *std::move(error);
  }
  return Translated{.chat = out + "}", .kept_messages = writer.Kept()};
}

ApiError AsAsked(ApiError error, const Request& request) {
  openai::RenameToolFields(error, "input_schema");
  if (error.field == "stop") RenameField(error, "stop_sequences");
  if (error.field == "reasoning_effort") RenameField(error, "output_config.effort");
  if (error.field == "thinking_budget") RenameField(error, "thinking.budget_tokens");
  if (error.field.starts_with("response_format")) {
    RenameField(error, std::string(FormatField(request)));
  }
  return error;
}

bool AsksForThinking(const Request& request) {
  return request.thinking && request.thinking->type != "disabled";
}

}  // namespace penstock::router::anthropic
