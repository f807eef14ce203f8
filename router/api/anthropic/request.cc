#include "router/api/anthropic/request.h"

#include <array>
#include <span>

#include "router/json/schema.h"

namespace penstock::router::anthropic {
namespace {

using json::MakeField;

constexpr std::string_view kContentExpected = "a string or an array of blocks";

constexpr auto kBlock = std::array{
    MakeField<&Block::type>("type", "a string", true),
    MakeField<&Block::text>("text", "a string"),
    MakeField<&Block::thinking>("thinking", "a string"),
    MakeField<&Block::id>("id", "a string"),
    MakeField<&Block::name>("name", "a string"),
    MakeField<&Block::input>("input", "an object"),
    MakeField<&Block::tool_use_id>("tool_use_id", "a string"),
    MakeField<&Block::content>("content", kContentExpected),
    MakeField<&Block::cache_control>("cache_control", "an object"),
};

constexpr auto kMessage = std::array{
    MakeField<&Message::role>("role", "a string", true),
    MakeField<&Message::content>("content", kContentExpected, true),
};

constexpr auto kToolFields = std::array{
    MakeField<&Tool::type>("type", "a string"),
    MakeField<&Tool::name>("name", "a string", true),
    MakeField<&Tool::description>("description", "a string"),
    MakeField<&Tool::input_schema>("input_schema", "an object"),
    MakeField<&Tool::strict>("strict", "a boolean"),
    MakeField<&Tool::cache_control>("cache_control", "an object"),
};

constexpr auto kToolChoice = std::array{
    MakeField<&ToolChoice::type>("type", "a string", true),
    MakeField<&ToolChoice::name>("name", "a string"),
    MakeField<&ToolChoice::disable_parallel_tool_use>("disable_parallel_tool_use", "a boolean"),
};

constexpr auto kThinking = std::array{
    MakeField<&Thinking::type>("type", "a string", true),
    MakeField<&Thinking::budget_tokens>("budget_tokens", "a positive integer"),
    json::WithoutEffect<Thinking>("display"),
};

constexpr auto kOutputFormat = std::array{
    MakeField<&OutputFormat::type>("type", "a string", true),
    MakeField<&OutputFormat::schema>("schema", "an object"),
};

constexpr auto kOutputConfig = std::array{
    MakeField<&OutputConfig::effort>("effort", "a string"),
    MakeField<&OutputConfig::format>("format", "an object"),
    json::WithoutEffect<OutputConfig>("task_budget"),
};

constexpr auto kCommon = std::array{
    MakeField<&Request::model>("model", "a string", true),
    MakeField<&Request::messages>("messages", "an array", true),
    MakeField<&Request::system>("system", kContentExpected),
    MakeField<&Request::tools>("tools", "an array"),
    MakeField<&Request::tool_choice>("tool_choice", "an object"),
    MakeField<&Request::thinking>("thinking", "an object"),
    MakeField<&Request::stop_sequences>("stop_sequences", "an array of strings"),
    MakeField<&Request::temperature>("temperature", "a number"),
    MakeField<&Request::top_p>("top_p", "a number"),
    MakeField<&Request::top_k>("top_k", "an integer"),
    MakeField<&Request::output_config>("output_config", "an object"),
    MakeField<&Request::output_format>("output_format", "an object"),
    MakeField<&Request::mcp_servers>("mcp_servers", "an array"),
    MakeField<&Request::thread>("thread", "an object"),
    MakeField<&Request::stream>("stream", "a boolean"),
    json::WithoutEffect<Request>("cache_control"),
    json::WithoutEffect<Request>("container"),
    json::WithoutEffect<Request>("context_management"),
    json::WithoutEffect<Request>("diagnostics"),
    json::WithoutEffect<Request>("inference_geo"),
    json::WithoutEffect<Request>("metadata"),
    json::WithoutEffect<Request>("service_tier"),
    json::WithoutEffect<Request>("speed"),
    json::WithoutEffect<Request>("user_profile_id"),
    json::WithoutEffect<Request>("workspace_id"),
};

constexpr auto kMessages = json::Join(
    kCommon, std::array{MakeField<&Request::max_tokens>("max_tokens", "a positive integer", true)});
constexpr auto kCount = json::Join(
    kCommon, std::array{MakeField<&Request::max_tokens>("max_tokens", "a positive integer")});

template <class T>
bool ReadList(json::Reader& reader, std::span<const json::Field<T>> fields, std::vector<T>& out,
              std::string_view expected) {
  if (!reader.EnterArray(expected)) return false;
  while (reader.NextElement()) {
    if (!json::ReadStrictObject<T>(reader, fields, out.emplace_back(), "an object")) return false;
  }
  return reader.ok();
}

// Keys of messages and tools may be newer than this server. They are not counted.
template <class T>
bool ReadUnchecked(json::Reader& reader, std::span<const json::Field<T>> fields,
                   std::vector<T>& out, std::string_view expected) {
  const json::UnknownKeys before = reader.unknown_keys();
  const bool ok = ReadList(reader, fields, out, expected);
  reader.unknown_keys() = before;
  return ok;
}

constexpr BodyRules kRules = {.limits = kPythonLimits, .to_error = FromJsonInWords};

}  // namespace

bool ReadValue(json::Reader& reader, Content& out, std::string_view expected) {
  if (reader.NextIs('"')) return reader.ReadString(out.blocks.emplace_back().text, expected);
  return ReadUnchecked<Block>(reader, kBlock, out.blocks, expected);
}

bool ReadValue(json::Reader& reader, MessageList& out, std::string_view expected) {
  return ReadUnchecked<Message>(reader, kMessage, out.list, expected);
}

bool ReadValue(json::Reader& reader, Tools& out, std::string_view expected) {
  return ReadUnchecked<Tool>(reader, kToolFields, out.list, expected);
}

bool ReadValue(json::Reader& reader, ToolChoice& out, std::string_view expected) {
  return json::ReadStrictObject<ToolChoice>(reader, kToolChoice, out, expected);
}

bool ReadValue(json::Reader& reader, Thinking& out, std::string_view expected) {
  return json::ReadStrictObject<Thinking>(reader, kThinking, out, expected);
}

bool ReadValue(json::Reader& reader, OutputFormat& out, std::string_view expected) {
  return json::ReadStrictObject<OutputFormat>(reader, kOutputFormat, out, expected);
}

bool ReadValue(json::Reader& reader, OutputConfig& out, std::string_view expected) {
  return json::ReadStrictObject<OutputConfig>(reader, kOutputConfig, out, expected);
}

void AppendRequestSchemas(std::string& out) {
  json::AppendSchema<Request>(out, "AnthropicMessagesRequest", kMessages);
  json::AppendSchema<Request>(out, "AnthropicCountRequest", kCount);
}

Parsed<Request> ParseMessages(std::string_view body) {
  return Parse(body, kRules, kMessages, "an object");
}

Parsed<Request> ParseCount(std::string_view body) {
  return Parse(body, kRules, kCount, "an object");
}

}  // namespace penstock::router::anthropic
