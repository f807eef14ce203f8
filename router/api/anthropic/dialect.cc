#include "router/api/anthropic/dialect.h"

#include <array>
#include <utility>

#include "router/api/anthropic/request.h"
#include "router/api/docs/shapes.h"
#include "router/api/openai/dialect.h"
#include "router/json/writer.h"

namespace penstock::router::anthropic {
namespace {

using enum ApiErrorKind;

struct Row {
  ApiErrorKind kind;
  int status;
  std::string_view type = "invalid_request_error";
};

constexpr std::array kTable = {
    Row{kValidation, 400},
    Row{kContextLength, 400},
    Row{kMalformedJson, 400},
    Row{kWrongType, 400},
    Row{kUnknownKey, 400},
    Row{kContentType, 415},
    Row{kTemplate, 400},
    Row{kTool, 400},
    Row{kSuffix, 400},
    Row{kBatchSize, 400},
    Row{kUnsupported, 400},
    Row{kUnauthorized, 401, "authentication_error"},
    Row{kNotFound, 404, "not_found_error"},
    Row{kModelNotFound, 404, "not_found_error"},
    Row{kMethodNotAllowed, 405},
    Row{kTooLarge, 413, "request_too_large"},
    Row{kBadRequest, 400},
    Row{kTimeout, 408, "timeout_error"},
    Row{kOverloaded, 429, "rate_limit_error"},
    Row{kBodyMemory, 529, "overloaded_error"},
    Row{kUnavailable, 529, "overloaded_error"},
    Row{kDraining, 529, "overloaded_error"},
    Row{kNoShard, 529, "overloaded_error"},
    Row{kDeadline, 504, "timeout_error"},
    Row{kGeneration, 500, "api_error"},
    Row{kInternal, 500, "api_error"},
};

// Clients shorten the conversation or `max_tokens` when they read these texts.
std::string ContextLength(const LengthExceeded& length) {
  const std::string prompt = std::to_string(length.prompt_tokens);
  if (length.max_new_tokens == 0 || length.prompt_tokens >= length.context) {
    const std::uint32_t most = length.max_new_tokens == 0 ? length.limit : length.context - 1;
    return "prompt is too long: " + prompt + " tokens > " + std::to_string(most) + " maximum";
  }
  return "input length and `max_tokens` exceed context limit: " + prompt + " + " +
         std::to_string(length.max_new_tokens) + " > " + std::to_string(length.context) +
         ", decrease input length or `max_tokens` and try again";
}

class Format final : public ErrorFormat {
 public:
  int Status(ApiErrorKind kind) const override { return RowOf(kTable, kind).status; }

  std::string Body(const ApiError& error) const override {
    const std::string_view type = RowOf(kTable, error.kind).type;
    // Anthropic's SDKs go on without a thread when they read these details.
    constexpr std::string_view kDetails =
        R"({"error_code":"thread_unsupported_request","unsupported":["thread"]})";
    if (error.kind == kUnsupported && error.field == kThread) {
      return json::ObjectText(
          "type", "error", "error",
          json::Object("type", type, "message", error.message, "details", json::Raw{kDetails}));
    }
    return json::ObjectText("type", "error", "error",
                            json::Object("type", type, "message", error.message));
  }

  std::string_view Schema() const override { return "AnthropicErrorResponse"; }

  ApiError FromEngine(const GenerationError& error, const ApiOptions& options) const override {
    const ErrorFormat& openai = openai::ErrorsAbout({"messages", "max_tokens", "response_format"});
    ApiError api = openai.FromEngine(error, options);
    if (api.field == "response_format") RenameField(api, "output_config.format");
    // tools[0].function.parameters of the chat that the request became
    constexpr std::string_view kParameters = ".function.parameters";
    if (api.field.starts_with("tools[") && api.field.ends_with(kParameters)) {
      const std::size_t tool = api.field.size() - kParameters.size();
      RenameField(api, api.field.substr(0, tool) + ".input_schema");
    }
    if (error.length) api.message = ContextLength(*error.length);
    return api;
  }
};

// Adds the request's id as the last member of an error.
void AddRequestId(std::string& body, std::string_view request_id) {
  if (!body.ends_with('}')) return;
  body.pop_back();
  json::AppendMembers(body, "request_id", request_id);
  body += '}';
}

constexpr docs::Shape kShapes[] = {
    {"AnthropicError", "type:string message:string details?:object"},
    {"AnthropicErrorResponse", "type:=error error:AnthropicError request_id?:string"},
    {"AnthropicOutputDetails", "thinking_tokens:integer"},
    {"AnthropicUsage",
     "input_tokens:integer cache_creation_input_tokens:integer cache_read_input_tokens:integer "
     "output_tokens:integer output_tokens_details:AnthropicOutputDetails"},
    {"AnthropicBlock",
     "type:=text|thinking|tool_use text?:string thinking?:string signature?:string id?:string "
     "name?:string input?:object"},
    {"AnthropicMessage",
     "id:string type:=message role:=assistant model:string content:AnthropicBlock[] "
     "stop_reason:string? stop_sequence:string? usage:AnthropicUsage"},
    {"AnthropicDelta",
     "type?:=text_delta|thinking_delta|signature_delta|input_json_delta text?:string "
     "thinking?:string signature?:string partial_json?:string stop_reason?:string? "
     "stop_sequence?:string?"},
    {"AnthropicEvent",
     "type:=message_start|content_block_start|content_block_delta|content_block_stop|message_delta|"
     "message_stop|ping message?:AnthropicMessage index?:integer content_block?:AnthropicBlock "
     "delta?:AnthropicDelta usage?:AnthropicUsage"},
    {"AnthropicCount", "input_tokens:integer"},
    {"AnthropicModel",
     "type:=model id:string display_name:string created_at:string lifecycle:string "
     "max_input_tokens:integer max_tokens:integer"},
    {"AnthropicModels", "data:AnthropicModel[] has_more:boolean first_id:string last_id:string"},
};

std::vector<Route> Routes() {
  return {
      Post("/v1/messages", Messages,
           {.body = "AnthropicMessagesRequest",
            .contents = {{{kJson, "AnthropicMessage"}, {kEvents, "AnthropicEvent"}}},
            .failure = "AnthropicErrorResponse"}),
      Post("/v1/messages/count_tokens", CountTokens,
           {.body = "AnthropicCountRequest", .contents = {{{kJson, "AnthropicCount"}}}}),
  };
}

class AnthropicDialect final : public Dialect {
 public:
  AnthropicDialect() : Dialect(Routes()) {}

  const ErrorFormat& Errors() const override { return anthropic::Errors(); }

  std::optional<std::string_view> KeyIn(const RequestHead& head) const override {
    const std::string_view key = head.Find("x-api-key");
    if (!key.empty()) return key;
    return Dialect::KeyIn(head);
  }
  std::string_view KeyAdvice() const override {
    return "send it in the header `x-api-key: KEY` or `Authorization: Bearer KEY` "
           "(curl: -H 'x-api-key: KEY')";
  }

  bool Owns(std::string_view path) const override {
    constexpr std::string_view kPath = "/v1/messages";
    return path == kPath || path.starts_with("/v1/messages/");
  }

  bool Signs() const override { return true; }
  void Sign(const RequestHead& head, HttpResponse& response) const override {
    if (response.failure) AddRequestId(response.body, head.request_id);
    response.headers.push_back({"request-id", head.request_id});
  }

  void AppendSchemas(std::string& out) const override {
    AppendRequestSchemas(out);
    docs::AppendShapes(out, kShapes);
  }
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect() { return std::make_unique<AnthropicDialect>(); }

const ErrorFormat& Errors() {
  static const Format format;
  return format;
}

std::string ErrorBody(const ApiError& error, std::string_view request_id) {
  std::string body = Errors().Body(error);
  AddRequestId(body, request_id);
  return body;
}

}  // namespace penstock::router::anthropic
