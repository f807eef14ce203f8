#include "router/api/openai/dialect.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "router/api/docs/shapes.h"
#include "router/api/openai/request.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

using enum ApiErrorKind;

struct Row {
  ApiErrorKind kind;
  int status;
  std::string_view code;
  std::string_view type = "invalid_request_error";
};

constexpr std::array kTable = {
    Row{kValidation, 400, "invalid_value"},
    Row{kContextLength, 400, "context_length_exceeded"},
    Row{kMalformedJson, 400, "invalid_json"},
    Row{kWrongType, 400, "invalid_type"},
    Row{kUnknownKey, 400, "unknown_parameter"},
    Row{kContentType, 415, "unsupported_media_type"},
    Row{kTemplate, 400, "template_error"},
    Row{kTool, 400, "tool_error"},
    Row{kSuffix, 400, "unsupported"},
    Row{kBatchSize, 400, "invalid_value"},
    Row{kUnsupported, 400, "unsupported"},
    Row{kUnauthorized, 401, "invalid_api_key"},
    Row{kNotFound, 404, "not_found"},
    Row{kModelNotFound, 404, "model_not_found"},
    Row{kMethodNotAllowed, 405, "method_not_allowed"},
    Row{kTooLarge, 413, "request_too_large"},
    Row{kBadRequest, 400, "bad_request"},
    Row{kTimeout, 408, "request_timeout", "timeout_error"},
    Row{kOverloaded, 429, "queue_full", "rate_limit_error"},
    Row{kBodyMemory, 503, "server_overloaded", "service_unavailable"},
    Row{kUnavailable, 503, "no_ready_shards", "service_unavailable"},
    Row{kDraining, 503, "server_draining", "service_unavailable"},
    Row{kNoShard, 503, "no_ready_shards", "service_unavailable"},
    Row{kDeadline, 504, "deadline_exceeded", "timeout_error"},
    Row{kGeneration, 500, "generation_failed", "server_error"},
    Row{kInternal, 500, "internal_error", "server_error"},
};

std::string ContextLength(const LengthExceeded& length) {
  const std::string prompt = std::to_string(length.prompt_tokens);
  std::string text = "This model's maximum context length is " + std::to_string(length.context) +
                     " tokens. However, ";
  if (length.max_new_tokens == 0) {
    return text + "your prompt has " + (length.at_least ? "at least " : "") + prompt +
           " tokens. A prompt may have at most " + std::to_string(length.limit) + ".";
  }
  const auto total = std::uint64_t{length.prompt_tokens} + length.max_new_tokens;
  return text + "you requested " + std::to_string(total) + " tokens (" + prompt +
         " in the prompt, " + std::to_string(length.max_new_tokens) + " in the completion).";
}

// The engine names fields as TGI does.
std::string FieldName(const std::string& field, const ErrorKeys& keys) {
  if (field == "grammar") return std::string(keys.grammar);
  if (field == "max_new_tokens") return std::string(keys.length);
  // The messages that the items of a response became are not the client's.
  if (field.starts_with("messages") && keys.prompt == "input") return "input";
  return field == "inputs" ? std::string(keys.prompt) : field;
}

// "grammar is not valid: …" about the key that held the grammar.
std::string AboutGrammar(std::string text, std::string_view key) {
  constexpr std::string_view kGrammar = "grammar";
  if (text.starts_with("grammar ")) {
    text.replace(0, kGrammar.size(), "`" + std::string(key) + "`");
  }
  return text;
}

// A template's own refusal. TGI's text for it is "syntax error: WHY (in <string>:LINE)".
std::string OfTemplate(std::string text) {
  constexpr std::string_view kSyntax = "syntax error: ";
  if (!text.starts_with(kSyntax)) return text;
  text = text.substr(kSyntax.size(), text.rfind(" (in <string>:") - kSyntax.size());
  return "the chat template refuses the messages: " + text;
}

class Format final : public ErrorFormat {
 public:
  explicit Format(ErrorKeys keys = {}) : keys_(keys) {}

  const ErrorKeys& keys() const { return keys_; }
  int Status(ApiErrorKind kind) const override { return RowOf(kTable, kind).status; }

  std::string Body(const ApiError& error) const override {
    const Row& row = RowOf(kTable, error.kind);
    std::optional<std::string_view> field = error.field;
    if (error.field.empty()) field.reset();
    return json::ObjectText("error", json::Object("message", error.message, "type", row.type,
                                                  "param", field, "code", row.code));
  }

  std::string_view Schema() const override { return "OpenAiErrorResponse"; }

  ApiError FromEngine(const GenerationError& error, const ApiOptions&) const override {
    ApiError api = router::FromEngine(error);
    if (api.field == "grammar") api.message = AboutGrammar(api.message, keys_.grammar);
    if (api.kind == kTemplate && api.field == "chat_template") {
      api.message = "`chat_template` is not valid: " + api.message;
    } else if (api.kind == kTemplate) {
      api.message = OfTemplate(api.message);
    }
    RenameField(api, FieldName(api.field, keys_));
    if (error.length) {
      api.message = ContextLength(*error.length);
      api.field = error.length->max_new_tokens == 0 ? keys_.prompt : keys_.length;
    }
    return api;
  }

 private:
  const ErrorKeys keys_;
};

std::vector<Route> Routes() {
  return {
      Post("/v1/chat/completions", ChatCompletions,
           {.body = "OpenAiChatRequest",
            .contents = {{{kJson, "OpenAiChatCompletion"}, {kEvents, "OpenAiChatChunk"}}},
            .failure = "OpenAiErrorResponse"}),
      Post("/v1/completions", Completions,
           {.body = "OpenAiCompletionRequest",
            .contents = {{{kJson, "OpenAiCompletion"}, {kEvents, "OpenAiCompletion"}}},
            .failure = "OpenAiErrorResponse"}),
      Post("/detokenize", Detokenize,
           {.body = "DetokenizeRequest", .contents = {{{kJson, "DetokenizeResponse"}}}}),
      Public(Get("/version", Version, {.contents = {{{kJson, "Version"}}}})),
      Public(Get("/v1/models", Models, {.contents = {{{kJson, "ModelsInfo,AnthropicModels"}}}})),
      Public(Get("/v1/models/{id}", Model, {.contents = {{{kJson, "ModelInfo,AnthropicModel"}}}})),
  };
}

constexpr docs::Shape kShapes[] = {
    {"TokensResponse", "count:integer max_model_len:integer tokens:integer[] token_strs:string[]?"},
    {"DetokenizeResponse", "prompt:string"},
    {"Version", "version:string"},
    {"OpenAiError", "message:string type:string param:string? code:string?"},
    {"OpenAiErrorResponse", "error:OpenAiError"},
    {"PromptTokensDetails", "cached_tokens:integer"},
    {"CompletionTokensDetails", "reasoning_tokens:integer"},
    {"OpenAiUsage",
     "prompt_tokens:integer completion_tokens:integer total_tokens:integer "
     "prompt_tokens_details:PromptTokensDetails "
     "completion_tokens_details:CompletionTokensDetails"},
    {"OpenAiTopLogprob", "token:string logprob:number bytes:integer[]"},
    {"OpenAiLogprob",
     "token:string logprob:number? bytes:integer[] top_logprobs:OpenAiTopLogprob[]"},
    {"OpenAiLogprobs", "content:OpenAiLogprob[] refusal:string?"},
    {"OpenAiCalledFunction", "name:string arguments:string"},
    {"OpenAiToolCall", "id:string type:string function:OpenAiCalledFunction"},
    {"OpenAiMessage",
     "role:string content:string? refusal:string? reasoning_content?:string "
     "tool_calls?:OpenAiToolCall[]"},
    {"OpenAiChatChoice",
     "index:integer message:OpenAiMessage logprobs:OpenAiLogprobs? finish_reason:string"},
    {"OpenAiChatCompletion",
     "id:string object:string created:integer model:string system_fingerprint:string "
     "choices:OpenAiChatChoice[] usage:OpenAiUsage prompt_logprobs?:PromptLogprob{}?[]"},
    {"OpenAiFunctionDelta", "name?:string arguments:string"},
    {"OpenAiToolCallDelta", "index:integer id?:string type?:string function:OpenAiFunctionDelta"},
    {"OpenAiDelta",
     "role?:string content?:string reasoning_content?:string tool_calls?:OpenAiToolCallDelta[]"},
    {"OpenAiChunkChoice",
     "index:integer delta:OpenAiDelta logprobs:OpenAiLogprobs? finish_reason:string?"},
    {"OpenAiChatChunk",
     "id:string object:string created:integer model:string system_fingerprint:string "
     "choices:OpenAiChunkChoice[] usage?:OpenAiUsage?"},
    {"PromptLogprob", "logprob:number rank:integer decoded_token:string"},
    {"OpenAiTextLogprobs",
     "tokens:string[] token_logprobs:number?[] top_logprobs:number{}?[] text_offset:integer[]"},
    {"OpenAiTextChoice",
     "index:integer text:string logprobs:OpenAiTextLogprobs? finish_reason:string? "
     "prompt_logprobs?:PromptLogprob{}?[]"},
    {"OpenAiCompletion",
     "id:string object:string created:integer model:string system_fingerprint:string "
     "choices:OpenAiTextChoice[] usage?:OpenAiUsage?"},
};

class OpenAiDialect final : public Dialect {
 public:
  OpenAiDialect() : Dialect(Routes()) {}
  const ErrorFormat& Errors() const override { return openai::Errors(); }
  bool Owns(std::string_view path) const override {
    constexpr std::string_view kBase = "/v1";
    // Clients append these to their base URL, whatever it is.
    return path == kBase || path.starts_with("/v1/") ||
           std::ranges::any_of(routes(), [path, kBase](const Route& route) {
             return route.pattern.starts_with(kBase) &&
                    path.ends_with(route.pattern.substr(kBase.size()));
           });
  }
  void AppendSchemas(std::string& out) const override {
    AppendRequestSchemas(out);
    docs::AppendShapes(out, kShapes);
  }
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect() { return std::make_unique<OpenAiDialect>(); }

const ErrorFormat& Errors() {
  static const Format format;
  return format;
}

const ErrorFormat& ErrorsAbout(ErrorKeys keys) {
  static const std::vector<Format> formats = [] {
    constexpr std::pair<std::string_view, std::string_view> kLengths[] = {
        {"messages", "messages"},
        {"messages", "max_tokens"},
        {"messages", "max_completion_tokens"},
        {"prompt", "prompt"},
        {"prompt", "max_tokens"},
        {"input", "input"},
        {"input", "max_output_tokens"}};
    std::vector<Format> all;
    for (const auto& [prompt, length] : kLengths) {
      for (const std::string_view grammar :
           {"response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice",
            "guided_grammar", "text.format", "tools"}) {
        all.emplace_back(ErrorKeys{prompt, length, grammar});
      }
    }
    return all;
  }();
  const auto found = std::ranges::find(formats, keys, &Format::keys);
  return found == formats.end() ? Errors() : *found;
}

}  // namespace penstock::router::openai
