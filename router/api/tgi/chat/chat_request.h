// The body of TGI's chat completions (names, types, defaults), and its messages as templates get
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/body.h"
#include "router/api/tgi/grammar/grammar.h"
#include "router/json/fields.h"
#include "router/json/value.h"

namespace penstock::router::tgi {

// A function that the model may call, or has called.
struct FunctionDefinition {
  std::optional<std::string> description;
  std::string name;
  json::Value arguments;
};

struct Tool {
  std::string type;
  FunctionDefinition function;
};

struct ToolCall {
  std::string id;
  std::string type;
  FunctionDefinition function;
};

// A message as a template sees it: the texts of parts joined, calls as their JSON.
struct Message {
  std::string role;
  std::optional<std::string> name;
  std::string content;
  bool is_calls = false;
  std::vector<std::string> call_ids;
};

struct ToolChoice {
  enum class Kind : std::uint8_t { kAuto, kNone, kRequired, kFunction };
  Kind kind = Kind::kAuto;
  std::string function;
};

struct StreamOptions {
  bool include_usage = false;
};

}  // namespace penstock::router::tgi

namespace penstock::router::json {
template <>
inline constexpr std::string_view kElementExpected<tgi::Message> = "struct Message";
template <>
inline constexpr std::string_view kElementExpected<tgi::Tool> = "struct Tool";
}  // namespace penstock::router::json

namespace penstock::router::tgi {

struct ChatRequest {
  std::optional<std::string> model;
  std::vector<Message> messages;
  std::optional<float> frequency_penalty;
  std::optional<std::vector<float>> logit_bias;
  std::optional<bool> logprobs;
  std::optional<std::uint32_t> top_logprobs;
  std::optional<std::uint32_t> max_tokens;
  std::optional<std::uint32_t> n;
  std::optional<float> presence_penalty;
  std::optional<std::vector<std::string>> stop;
  bool stream = false;
  std::optional<std::uint64_t> seed;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<std::vector<Tool>> tools;
  std::optional<std::string> tool_prompt;
  ToolChoice tool_choice;
  std::optional<GrammarChoice> response_format;
  StreamOptions stream_options;
};

// For the field tables, found through argument-dependent lookup.
bool ReadValue(json::Reader& reader, Message& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Tool& out, std::string_view expected);
bool ReadValue(json::Reader& reader, ToolChoice& out, std::string_view expected);
bool ReadValue(json::Reader& reader, StreamOptions& out, std::string_view expected);

void AppendChatSchema(std::string& out);

Parsed<ChatRequest> ParseChat(std::string_view body);

// {"description":…,"name":…,"arguments":"…"}: arguments are JSON in a string.
void AppendFunction(std::string& out, const FunctionDefinition& function);

// The JSON array that a template gets as `messages`.
std::string MessagesJson(const std::vector<Message>& messages);

}  // namespace penstock::router::tgi
