#include "router/api/responses/request.h"

#include <array>

#include "router/answer/tool_set.h"
#include "router/json/schema.h"

namespace penstock::router::responses {
namespace {

using json::MakeFieldOf;
using openai::ChatRequest;
using openai::Common;

constexpr std::size_t kMaxIncludes = 32;

constexpr auto kFormat = std::array{
    json::MakeField<&TextFormat::type>("type", "a string"),
    json::MakeField<&TextFormat::name>("name", "a string"),
    json::MakeField<&TextFormat::strict>("strict", "a boolean"),
    json::MakeField<&TextFormat::schema>("schema", "an object"),
    json::WithoutEffect<TextFormat>("description"),
};

constexpr auto kText = std::array{
    json::MakeField<&TextOptions::format>("format", "an object"),
    json::WithoutEffect<TextOptions>("verbosity"),
};

constexpr auto kReasoning = std::array{
    json::MakeField<&Reasoning::effort>("effort", "a string"),
    json::WithoutEffect<Reasoning>("summary"),
    json::WithoutEffect<Reasoning>("generate_summary"),
    json::WithoutEffect<Reasoning>("context"),
    json::WithoutEffect<Reasoning>("mode"),
};

// What an answer means the same without.
constexpr auto kWithoutEffect = std::array{
    json::WithoutEffect<Request>("client_metadata"),
    json::WithoutEffect<Request>("context_management"),
    json::WithoutEffect<Request>("max_tool_calls"),
    json::WithoutEffect<Request>("prompt_cache_key"),
    json::WithoutEffect<Request>("prompt_cache_options"),
    json::WithoutEffect<Request>("prompt_cache_retention"),
    json::WithoutEffect<Request>("safety_identifier"),
    json::WithoutEffect<Request>("service_tier"),
    json::WithoutEffect<Request>("stream_options"),
    json::WithoutEffect<Request>("truncation"),
    json::WithoutEffect<Request>("user"),
};

// Keys of chats that mean the same here.
constexpr auto kOfChats = std::array{
    MakeFieldOf<Request, &Common::model>("model", "a string"),
    MakeFieldOf<Request, &Common::temperature>("temperature", "a number"),
    MakeFieldOf<Request, &Common::top_p>("top_p", "a number"),
    MakeFieldOf<Request, &Common::stream>("stream", "a boolean"),
    MakeFieldOf<Request, &Common::stop>("stop", "a string or an array of strings"),
    MakeFieldOf<Request, &Common::seed>("seed", "an integer"),
    MakeFieldOf<Request, &Common::frequency_penalty>("frequency_penalty", "a number"),
    MakeFieldOf<Request, &Common::presence_penalty>("presence_penalty", "a number"),
    MakeFieldOf<Request, &Common::top_k>("top_k", "an integer"),
    MakeFieldOf<Request, &Common::min_p>("min_p", "a number"),
    MakeFieldOf<Request, &Common::repetition_penalty>("repetition_penalty", "a number"),
    MakeFieldOf<Request, &Common::min_tokens>("min_tokens", "an integer that is not negative"),
    MakeFieldOf<Request, &Common::ignore_eos>("ignore_eos", "a boolean"),
    MakeFieldOf<Request, &ChatRequest::top_logprobs>("top_logprobs", "an integer"),
    MakeFieldOf<Request, &ChatRequest::tool_choice>("tool_choice", "a string or an object"),
    MakeFieldOf<Request, &ChatRequest::parallel_tool_calls>("parallel_tool_calls", "a boolean"),
    MakeFieldOf<Request, &ChatRequest::chat_template_kwargs>("chat_template_kwargs", "an object"),
    MakeFieldOf<Request, &ChatRequest::moderation>("moderation", "an object"),
    MakeFieldOf<Request, &ChatRequest::max_completion_tokens>("max_output_tokens",
                                                              "a positive integer"),
};

constexpr auto kFields = json::Join(
    json::Join(kOfChats, kWithoutEffect),
    std::array{
        json::MakeField<&Request::input>("input", "a string or an array of items"),
        json::MakeField<&Request::instructions>("instructions", "a string"),
        json::MakeField<&Request::previous_response_id>("previous_response_id", "a string"),
        json::MakeField<&Request::function_tools>("tools", "an array"),
        json::MakeField<&Request::text>("text", "an object"),
        json::MakeField<&Request::reasoning>("reasoning", "an object"),
        json::MakeField<&Request::include>("include", "an array of strings"),
        json::MakeField<&Request::store>("store", "a boolean"),
        json::MakeField<&Request::metadata>("metadata", "an object"),
        json::MakeField<&Request::background>("background", "a boolean"),
        json::MakeField<&Request::conversation>("conversation", "a string or an object"),
        json::MakeField<&Request::prompt>("prompt", "an object"),
    });

bool ReadToolMember(json::Reader& reader, std::string_view key, std::string& type,
                    FunctionTool& tool) {
  if (reader.TakeNull()) return true;
  if (key == "type") return reader.ReadString(type, "a string");
  if (key == "name") {
    if (!reader.ReadString(tool.name, "a string")) return false;
    return !tool.name.empty() || reader.FailHere("`name` must be a name that is not empty");
  }
  if (key == "description") return reader.ReadString(tool.description.emplace(), "a string");
  if (key == "strict") return reader.ReadBool(tool.strict, "a boolean");
  if (key != "parameters") return reader.Skip();
  if (!reader.NextIs('{')) return reader.FailNext("an object");
  return reader.ReadRaw(tool.parameters.emplace().text);
}

}  // namespace

bool ReadValue(json::Reader& reader, Tools& out, std::string_view expected) {
  if (!reader.EnterArray(expected)) return false;
  std::string key;
  for (std::size_t count = 0; reader.NextElement(); ++count) {
    if (count == answer::kMaxTools) {
      return reader.FailHere("`tools` must have at most " + std::to_string(count) + " tools");
    }
    std::string type;
    FunctionTool tool;
    if (!reader.EnterObject("an object")) return false;
    while (reader.NextKey(key)) {
      if (!reader.Colon() || !ReadToolMember(reader, key, type, tool)) return false;
    }
    if (!reader.ok()) return false;
    if (type.empty()) return reader.FailHere("missing field `type`");
    if (type != "function") {
      reader.unknown_keys().AddWithoutEffect("tools." + type);
      continue;
    }
    if (tool.name.empty()) return reader.FailHere("missing field `name`");
    out.functions.push_back(std::move(tool));
  }
  return reader.ok();
}

bool ReadValue(json::Reader& reader, TextFormat& out, std::string_view expected) {
  if (!reader.NextIs('{')) return reader.FailNext(expected);
  return json::ReadObject<TextFormat>(reader, kFormat, out, expected);
}

bool ReadValue(json::Reader& reader, TextOptions& out, std::string_view expected) {
  if (!reader.NextIs('{')) return reader.FailNext(expected);
  return json::ReadObject<TextOptions>(reader, kText, out, expected);
}

bool ReadValue(json::Reader& reader, Reasoning& out, std::string_view expected) {
  if (!reader.NextIs('{')) return reader.FailNext(expected);
  return json::ReadObject<Reasoning>(reader, kReasoning, out, expected);
}

bool ReadValue(json::Reader& reader, Include& out, std::string_view expected) {
  if (!reader.EnterArray(expected)) return false;
  std::string value;
  for (std::size_t count = 0; reader.NextElement(); ++count) {
    if (count == kMaxIncludes) {
      return reader.FailHere("`include` must have at most " + std::to_string(count) + " strings");
    }
    if (!reader.ReadString(value, "a string")) return false;
    if (value == "message.output_text.logprobs") {
      out.logprobs = true;
    } else if (value == "reasoning.encrypted_content") {
      out.encrypted_reasoning = true;
    } else {
      reader.unknown_keys().AddWithoutEffect("include." + value);
    }
  }
  return reader.ok();
}

void AppendRequestSchema(std::string& out) {
  json::AppendSchema<Request>(out, "OpenAiResponseRequest", kFields);
}

Parsed<Request> ParseRequest(std::string_view body) {
  return Parse(body, openai::kRules, kFields, "an object");
}

}  // namespace penstock::router::responses
