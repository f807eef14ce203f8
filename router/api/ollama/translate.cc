#include "router/api/ollama/translate.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "router/json/writer.h"

namespace penstock::router::ollama {
namespace {

using Check = std::optional<ApiError>;

template <class T>
void AppendGiven(std::string& out, std::string_view key, const std::optional<T>& value) {
  if (value) json::AppendMembers(out, key, *value);
}

void AppendOptions(std::string& out, const Options& options) {
  if (options.num_predict.value_or(0) > 0) {
    json::AppendMembers(out, "max_tokens", *options.num_predict);
  }
  json::AppendMembers(out, "temperature", options.temperature.value_or(kTemperature), "top_k",
                      options.top_k.value_or(kTopK), "top_p", options.top_p.value_or(kTopP));
  AppendGiven(out, "min_p", options.min_p);
  AppendGiven(out, "typical_p", options.typical_p);
  AppendGiven(out, "seed", options.seed);
  AppendGiven(out, "repetition_penalty", options.repeat_penalty);
  AppendGiven(out, "presence_penalty", options.presence_penalty);
  AppendGiven(out, "frequency_penalty", options.frequency_penalty);
  if (options.stop.strings.empty()) return;
  json::AppendMembers(out, "stop",
                      json::Array(options.stop.strings, [](std::string& text, const auto& stop) {
                        json::AppendString(text, stop);
                      }));
}

Check AppendFormat(std::string& out, const Common& request) {
  if (!request.format || request.format->text == "\"\"") return std::nullopt;
  if (request.format->text == "\"json\"") {
    json::AppendMembers(out, "response_format", json::Object("type", "json_object"));
    return std::nullopt;
  }
  if (!request.format->text.starts_with('{')) {
    return MustBe("format", "json or a JSON schema", request.format->text.substr(0, 100));
  }
  json::AppendMembers(out, "response_format",
                      json::Object("type", "json_schema", "json_schema",
                                   json::Object("name", "output", "schema", *request.format)));
  return std::nullopt;
}

// Templates call the variable enable_thinking or thinking.
Check AppendThink(std::string& out, const Common& request) {
  if (!request.think) return std::nullopt;
  const std::string_view think = request.think->text;
  if (think.starts_with('"')) {
    json::AppendMembers(out, "reasoning_effort", *request.think);
  } else if (think != "true" && think != "false") {
    return MustBe("think", "true, false, low, medium or high", think.substr(0, 100));
  }
  const bool on = think != "false";
  json::AppendMembers(out, "chat_template_kwargs",
                      json::Object("enable_thinking", on, "thinking", on));
  return std::nullopt;
}

Check AppendCommon(std::string& out, const Common& request) {
  if (request.logprobs) return Unsupported("logprobs", "are not supported");
  json::AppendMembers(out, "model", WithoutTag(request.model), "stream", request.stream);
  AppendOptions(out, request.options);
  return AppendFormat(out, request);
}

// Ollama's calls and results may have no ids: a result belongs to the oldest call without one.
class MessagesWriter {
 public:
  Check Add(const Message& message, std::size_t index) {
    const std::string path = "messages[" + std::to_string(index) + "]";
    if (!message.images.empty()) return Unsupported(path + ".images", "are not supported");
    json::AppendObject(messages_, "role", message.role, "content", message.content);
    messages_.pop_back();
    if (!message.thinking.empty()) {
      json::AppendMembers(messages_, "reasoning_content", message.thinking);
    }
    if (message.role == "tool") AddResultId(message);
    if (auto error = AddCalls(message, path)) return error;
    messages_ += '}';
    return std::nullopt;
  }

  std::string Text() const { return "[" + messages_ + "]"; }

 private:
  // Ollama reads no ids: without one, or with one of no call, a result is that of the first call
  // that has none.
  void AddResultId(const Message& message) {
    auto call = std::ranges::find(open_calls_, message.tool_call_id);
    if (call == open_calls_.end()) call = open_calls_.begin();
    if (call == open_calls_.end()) return json::AppendMembers(messages_, "tool_call_id", "");
    json::AppendMembers(messages_, "tool_call_id", *call);
    open_calls_.erase(call);
  }

  Check AddCalls(const Message& message, const std::string& path) {
    if (message.tool_calls.empty()) return std::nullopt;
    open_calls_.clear();
    std::string calls;
    for (const Call& call : message.tool_calls) {
      const std::string_view arguments =
          call.function.arguments ? call.function.arguments->text : "{}";
      if (!arguments.starts_with('{')) {
        return MustBe(path + ".tool_calls.function.arguments", "an object",
                      arguments.substr(0, 100));
      }
      open_calls_.push_back(call.id.empty() ? NextId() : call.id);
      json::AppendObject(calls, "id", open_calls_.back(), "type", "function", "function",
                         json::Object("name", call.function.name, "arguments", arguments));
    }
    json::AppendMembers(messages_, "tool_calls", json::Raw{"[" + calls + "]"});
    return std::nullopt;
  }

  // Nine letters and digits, which every template takes.
  std::string NextId() {
    std::string number = std::to_string(++calls_);
    return "call" + std::string(5 - std::min<std::size_t>(5, number.size()), '0') + number;
  }

  std::string messages_;
  std::deque<std::string> open_calls_;
  std::size_t calls_ = 0;
};

Check CheckGenerate(const GenerateRequest& request) {
  if (!request.images.empty()) return Unsupported("images", "are not supported");
  if (!request.suffix.empty()) return Unsupported("suffix", "is not supported");
  if (!request.context.empty()) return Unsupported("context", "is not supported");
  if (!request.chat_template.empty()) return Unsupported("template", "is not supported");
  return std::nullopt;
}

Check AppendMessages(std::string& out, const MessageList& messages) {
  MessagesWriter writer;
  for (std::size_t i = 0; i < messages.list.size(); ++i) {
    if (auto error = writer.Add(messages.list[i], i)) return error;
  }
  json::AppendMembers(out, "messages", json::Raw{writer.Text()});
  return std::nullopt;
}

}  // namespace

Translated TranslateChat(const ChatRequest& request) {
  std::string out = "{";
  if (auto error = AppendMessages(out, request.messages)) return *std::move(error);
  if (auto error = AppendCommon(out, request)) return *std::move(error);
  if (auto error = AppendThink(out, request)) return *std::move(error);
  AppendGiven(out, "tools", request.tools);
  return out + "}";
}

Translated TranslateGenerate(const GenerateRequest& request) {
  if (auto error = CheckGenerate(request)) return *std::move(error);
  MessageList messages;
  if (!request.system.empty()) {
    messages.list.push_back({.role = "system", .content = request.system});
  }
  messages.list.push_back({.role = "user", .content = request.prompt});
  std::string out = "{";
  if (auto error = AppendMessages(out, messages)) return *std::move(error);
  if (auto error = AppendCommon(out, request)) return *std::move(error);
  if (auto error = AppendThink(out, request)) return *std::move(error);
  return out + "}";
}

Translated TranslateRaw(const GenerateRequest& request) {
  if (auto error = CheckGenerate(request)) return *std::move(error);
  if (!request.system.empty()) return Unsupported("system", "has no meaning beside `raw`");
  std::string out = "{";
  json::AppendMembers(out, "prompt", request.prompt);
  if (auto error = AppendCommon(out, request)) return *std::move(error);
  return out + "}";
}

ApiError AsAsked(ApiError error) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kNames = {{
      {"max_tokens", "options.num_predict"},
      {"temperature", "options.temperature"},
      {"top_p", "options.top_p"},
      {"top_k", "options.top_k"},
      {"min_p", "options.min_p"},
      {"typical_p", "options.typical_p"},
      {"repetition_penalty", "options.repeat_penalty"},
      {"presence_penalty", "options.presence_penalty"},
      {"frequency_penalty", "options.frequency_penalty"},
      {"stop", "options.stop"},
      {"reasoning_effort", "think"},
      {"response_format", "format"},
  }};
  for (const auto& [from, to] : kNames) {
    if (error.field == from) {
      RenameField(error, std::string(to));
      break;
    }
  }
  return error;
}

std::string_view WithoutTag(std::string_view model) {
  constexpr std::string_view kTag = ":latest";
  if (model.ends_with(kTag)) model.remove_suffix(kTag.size());
  return model;
}

}  // namespace penstock::router::ollama
