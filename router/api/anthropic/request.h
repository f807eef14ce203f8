// Bodies of Anthropic's messages and count_tokens. As the SDKs expect, null counts as absent, and
// unknown keys are ignored. The keys of messages and tools are not checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/body.h"
#include "router/json/fields.h"

namespace penstock::router::anthropic {

// Anthropic's beta of conversations that the server keeps.
inline constexpr std::string_view kThread = "thread";

struct Block;

// Blocks, or a string, which is one block of text.
struct Content {
  std::vector<Block> blocks;
};

// The members of all types of blocks that a prompt may have.
struct Block {
  std::string type = "text";
  std::string text;
  std::string thinking;
  std::string id;  // of a tool_use
  std::string name;
  std::optional<json::Raw> input;
  std::string tool_use_id;  // of a tool_result
  Content content;
  std::optional<json::Raw> cache_control;
};

struct Message {
  std::string role;
  Content content;
};
struct MessageList {
  std::vector<Message> list;
};

struct Tool {
  std::string type = "custom";
  std::string name;
  std::optional<std::string> description;
  std::optional<json::Raw> input_schema;
  std::optional<bool> strict;
  std::optional<json::Raw> cache_control;
};
struct Tools {
  std::vector<Tool> list;
};

struct ToolChoice {
  std::string type;
  std::string name;
  bool disable_parallel_tool_use = false;
};

struct Thinking {
  std::string type;
  std::optional<std::uint32_t> budget_tokens;
};

struct OutputFormat {
  std::string type;
  std::optional<json::Raw> schema;
};
struct OutputConfig {
  std::optional<std::string> effort;
  std::optional<OutputFormat> format;
};

struct Request {
  std::string model;
  MessageList messages;
  Content system;
  std::optional<std::uint32_t> max_tokens;
  Tools tools;
  std::optional<ToolChoice> tool_choice;
  std::optional<Thinking> thinking;
  std::vector<std::string> stop_sequences;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<std::int32_t> top_k;
  std::optional<OutputConfig> output_config;
  std::optional<OutputFormat> output_format;  // the older name of output_config.format
  std::vector<json::Raw> mcp_servers;         // refused
  std::optional<json::Raw> thread;            // refused: no conversation is stored
  bool stream = false;
};

// Readers of nested objects. The field tables find them by argument-dependent lookup.
bool ReadValue(json::Reader& reader, Content& out, std::string_view expected);
bool ReadValue(json::Reader& reader, MessageList& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Tools& out, std::string_view expected);
bool ReadValue(json::Reader& reader, ToolChoice& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Thinking& out, std::string_view expected);
bool ReadValue(json::Reader& reader, OutputFormat& out, std::string_view expected);
bool ReadValue(json::Reader& reader, OutputConfig& out, std::string_view expected);

// The bodies as JSON schemas, members of an object of them.
void AppendRequestSchemas(std::string& out);

// `body` must outlive the result: raw values point into it.
Parsed<Request> ParseMessages(std::string_view body);
Parsed<Request> ParseCount(std::string_view body);  // max_tokens may be absent

}  // namespace penstock::router::anthropic
