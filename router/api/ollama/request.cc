#include "router/api/ollama/request.h"

#include <array>

#include "router/json/schema.h"

namespace penstock::router::ollama {
namespace {

using json::MakeField;
using json::MakeFieldOf;

constexpr auto kOptions = std::array{
    MakeField<&Options::num_predict>("num_predict", "an integer"),
    MakeField<&Options::temperature>("temperature", "a number"),
    MakeField<&Options::top_k>("top_k", "an integer"),
    MakeField<&Options::top_p>("top_p", "a number"),
    MakeField<&Options::min_p>("min_p", "a number"),
    MakeField<&Options::typical_p>("typical_p", "a number"),
    MakeField<&Options::seed>("seed", "an integer"),
    MakeField<&Options::repeat_penalty>("repeat_penalty", "a number"),
    MakeField<&Options::presence_penalty>("presence_penalty", "a number"),
    MakeField<&Options::frequency_penalty>("frequency_penalty", "a number"),
    MakeField<&Options::stop>("stop", "a string or an array of strings"),
    json::WithoutEffect<Options>("num_ctx"),
    json::WithoutEffect<Options>("num_keep"),
    json::WithoutEffect<Options>("num_batch"),
    json::WithoutEffect<Options>("num_gpu"),
    json::WithoutEffect<Options>("main_gpu"),
    json::WithoutEffect<Options>("num_thread"),
    json::WithoutEffect<Options>("numa"),
    json::WithoutEffect<Options>("use_mmap"),
    json::WithoutEffect<Options>("use_mlock"),
    json::WithoutEffect<Options>("low_vram"),
    json::WithoutEffect<Options>("repeat_last_n"),
    json::WithoutEffect<Options>("penalize_newline"),
};

template <class T>
constexpr auto kCommon = std::array{
    MakeFieldOf<T, &Common::model>("model", "a string", true),
    MakeFieldOf<T, &Common::format>("format", "a string or an object"),
    MakeFieldOf<T, &Common::options>("options", "an object"),
    MakeFieldOf<T, &Common::think>("think", "a boolean or a string"),
    MakeFieldOf<T, &Common::stream>("stream", "a boolean"),
    MakeFieldOf<T, &Common::logprobs>("logprobs", "a boolean"),
    json::WithoutEffect<T>("top_logprobs"),
    json::WithoutEffect<T>("keep_alive"),
};

constexpr auto kChat =
    json::Join(kCommon<ChatRequest>, std::array{
                                         MakeField<&ChatRequest::messages>("messages", "an array"),
                                         MakeField<&ChatRequest::tools>("tools", "an array"),
                                     });

constexpr auto kGenerate =
    json::Join(kCommon<GenerateRequest>,
               std::array{
                   MakeField<&GenerateRequest::prompt>("prompt", "a string"),
                   MakeField<&GenerateRequest::system>("system", "a string"),
                   MakeField<&GenerateRequest::raw>("raw", "a boolean"),
                   MakeField<&GenerateRequest::suffix>("suffix", "a string"),
                   MakeField<&GenerateRequest::chat_template>("template", "a string"),
                   MakeField<&GenerateRequest::context>("context", "an array of token ids"),
                   MakeField<&GenerateRequest::images>("images", "an array of strings"),
               });

constexpr auto kShow = std::array{
    json::WithAlias(MakeField<&ShowRequest::model>("model", "a string", true), "name"),
    json::WithoutEffect<ShowRequest>("verbose"),
};

constexpr auto kFunction = std::array{
    MakeField<&Function::name>("name", "a string", true),
    MakeField<&Function::arguments>("arguments", "an object"),
};
constexpr auto kCall = std::array{
    MakeField<&Call::id>("id", "a string"),
    MakeField<&Call::function>("function", "an object", true),
};
constexpr auto kMessage = std::array{
    MakeField<&Message::role>("role", "a string", true),
    MakeField<&Message::content>("content", "a string"),
    MakeField<&Message::thinking>("thinking", "a string"),
    MakeField<&Message::images>("images", "an array of strings"),
    MakeField<&Message::tool_calls>("tool_calls", "an array"),
    MakeField<&Message::tool_call_id>("tool_call_id", "a string"),
};

constexpr BodyRules kRules = {.limits = kPythonLimits, .to_error = FromJsonInWords};

}  // namespace

bool ReadValue(json::Reader& reader, Options& out, std::string_view expected) {
  return json::ReadStrictObject<Options>(reader, kOptions, out, expected);
}

bool ReadValue(json::Reader& reader, Function& out, std::string_view expected) {
  return json::ReadStrictObject<Function>(reader, kFunction, out, expected);
}

bool ReadValue(json::Reader& reader, Call& out, std::string_view) {
  return json::ReadStrictObject<Call>(reader, kCall, out, "an object");
}

bool ReadValue(json::Reader& reader, MessageList& out, std::string_view expected) {
  const json::UnknownKeys before = reader.unknown_keys();
  if (!reader.EnterArray(expected)) return false;
  while (reader.NextElement()) {
    if (!json::ReadStrictObject<Message>(reader, kMessage, out.list.emplace_back(), "an object"))
      return false;
  }
  reader.unknown_keys() = before;
  return reader.ok();
}

void AppendRequestSchemas(std::string& out) {
  json::AppendSchema<ChatRequest>(out, "OllamaChatRequest", kChat);
  json::AppendSchema<GenerateRequest>(out, "OllamaGenerateRequest", kGenerate);
  json::AppendSchema<ShowRequest>(out, "OllamaShowRequest", kShow);
}

Parsed<ChatRequest> ParseChat(std::string_view body) {
  return Parse(body, kRules, kChat, "an object");
}

Parsed<GenerateRequest> ParseGenerate(std::string_view body) {
  return Parse(body, kRules, kGenerate, "an object");
}

Parsed<ShowRequest> ParseShow(std::string_view body) {
  return Parse(body, kRules, kShow, "an object");
}

}  // namespace penstock::router::ollama
