#include "router/api/tgi/chat/completion_request.h"

#include <array>
#include <utility>

#include "router/api/openai_keys.h"
#include "router/json/schema.h"
#include "router/json/value.h"

namespace penstock::router::tgi {
namespace {

using json::MakeField;
using json::Value;

constexpr auto kOwnCompletion = std::array{
    MakeField<&CompletionRequest::model>("model", "a string"),
    MakeField<&CompletionRequest::prompt>("prompt", "a prompt", true),
    MakeField<&CompletionRequest::max_tokens>("max_tokens", "u32"),
    MakeField<&CompletionRequest::temperature>("temperature", "f32"),
    MakeField<&CompletionRequest::top_p>("top_p", "f32"),
    MakeField<&CompletionRequest::stream>("stream", "a boolean"),
    MakeField<&CompletionRequest::seed>("seed", "u64"),
    MakeField<&CompletionRequest::suffix>("suffix", "a string"),
    MakeField<&CompletionRequest::repetition_penalty>("repetition_penalty", "f32"),
    MakeField<&CompletionRequest::frequency_penalty>("frequency_penalty", "f32"),
    MakeField<&CompletionRequest::stop>("stop", "a sequence"),
};
constexpr auto kCompletion =
    json::Join(kOwnCompletion, kOpenAiCompletionKeysWithoutEffect<CompletionRequest>);

}  // namespace

bool ReadValue(json::Reader& reader, Prompts& out, std::string_view) {
  Value value;
  if (!json::ReadValue(reader, value, "a value")) return false;
  if (value.is(Value::Kind::kString)) {
    out.texts = {std::move(value.text)};
    return true;
  }
  const auto fail = [&reader] {
    return reader.FailShape("data did not match any variant of untagged enum PromptDeserializer");
  };
  if (!value.is(Value::Kind::kArray)) return fail();
  for (Value& element : value.elements) {
    if (!element.is(Value::Kind::kString)) return fail();
    out.texts.push_back(std::move(element.text));
  }
  return !out.texts.empty() ||
         reader.FailShape("Empty array detected. Do not use an empty array for the prompt.");
}

void AppendCompletionSchema(std::string& out) {
  json::AppendSchema<CompletionRequest>(out, "CompletionRequest", kCompletion);
}

Parsed<CompletionRequest> ParseCompletion(std::string_view body) {
  return Parse(body, {.limits = kLimits}, kCompletion, "struct CompletionRequest");
}

std::vector<Request> LowerCompletion(const CompletionRequest& completion) {
  Request request;
  Parameters p;
  p.do_sample = !completion.temperature || *completion.temperature != 0.0f;
  if (p.do_sample) p.temperature = completion.temperature;
  p.repetition_penalty = completion.repetition_penalty;
  p.frequency_penalty = completion.frequency_penalty;
  p.top_p = completion.top_p;
  p.max_new_tokens = completion.max_tokens;
  p.stop = completion.stop.value_or(std::vector<std::string>());
  p.details = true;
  p.decoder_input_details = !completion.stream;
  p.seed = completion.seed;
  if (completion.model && *completion.model != "tgi") p.adapter_id = completion.model;
  request.parameters = std::move(p);
  std::vector<Request> requests;
  for (const std::string& text : completion.prompt.texts) {
    request.inputs = text;
    requests.push_back(request);
  }
  return requests;
}

}  // namespace penstock::router::tgi
