// Bodies of Ollama's chat, generate and show. null counts as absent, and unknown keys are ignored.
// The keys of messages and tools are not checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/body.h"
#include "router/api/openai/request.h"
#include "router/json/fields.h"

namespace penstock::router::ollama {

struct Options {
  std::optional<std::int32_t> num_predict;  // 0 and below: no limit
  std::optional<float> temperature;
  std::optional<std::int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> typical_p;
  std::optional<std::int64_t> seed;
  std::optional<float> repeat_penalty;
  std::optional<float> presence_penalty;
  std::optional<float> frequency_penalty;
  openai::Stop stop;
};

struct Common {
  std::string model;
  std::optional<json::Raw> format;
  Options options;
  std::optional<json::Raw> think;
  bool stream = true;
  bool logprobs = false;  // refused
};

struct Function {
  std::string name;
  std::optional<json::Raw> arguments;
};
struct Call {
  std::string id;
  Function function;
};
struct Message {
  std::string role;
  std::string content;
  std::string thinking;
  std::vector<json::Raw> images;  // refused
  std::vector<Call> tool_calls;
  std::string tool_call_id;
};
struct MessageList {
  std::vector<Message> list;
};

struct ChatRequest : Common {
  MessageList messages;
  std::optional<json::Raw> tools;
};

struct GenerateRequest : Common {
  std::string prompt;
  std::string system;
  bool raw = false;  // the prompt is the whole text
  // Refused.
  std::string suffix;
  std::string chat_template;
  std::vector<std::int32_t> context;
  std::vector<json::Raw> images;
};

struct ShowRequest {
  std::string model;
};

// Readers of nested objects. The field tables find them by argument-dependent lookup.
bool ReadValue(json::Reader& reader, Options& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Function& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Call& out, std::string_view expected);
bool ReadValue(json::Reader& reader, MessageList& out, std::string_view expected);

// The bodies as JSON schemas, members of an object of them.
void AppendRequestSchemas(std::string& out);

// `body` must outlive the result: raw values point into it.
Parsed<ChatRequest> ParseChat(std::string_view body);
Parsed<GenerateRequest> ParseGenerate(std::string_view body);
Parsed<ShowRequest> ParseShow(std::string_view body);

}  // namespace penstock::router::ollama
