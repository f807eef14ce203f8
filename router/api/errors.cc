#include "router/api/errors.h"

#include <algorithm>
#include <array>

#include "router/api/djl/errors.h"
#include "router/json/writer.h"

namespace penstock::router {
namespace {

using enum ApiErrorKind;

constexpr std::string_view kInvalidRequest = "invalid_request_error";

// google.rpc.Code
constexpr int kInvalidArgument = 3, kDeadlineExceeded = 4, kGrpcNotFound = 5, kExhausted = 8,
              kUnimplemented = 12, kGrpcInternal = 13, kGrpcUnavailable = 14, kUnauthenticated = 16;

constexpr std::array kTable = {
    ErrorRow{kValidation, "validation", 422, "validation", "Input validation error: ", 400,
             kInvalidRequest, "invalid_value", kInvalidArgument, 0, 400, ""},
    ErrorRow{kContextLength, "validation", 422, "validation", "Input validation error: ", 400,
             kInvalidRequest, "context_length_exceeded", kInvalidArgument, 0, 400, ""},
    ErrorRow{kMalformedJson, "json", 400, "", "Failed to parse the request body as JSON: ", 400,
             kInvalidRequest, "invalid_json", kInvalidArgument, 0, 424, ""},
    ErrorRow{kWrongType, "type", 422, "",
             "Failed to deserialize the JSON body into the target type: ", 400, kInvalidRequest,
             "invalid_type", kInvalidArgument, 0, 424, ""},
    ErrorRow{kContentType, "content_type", 415, "", "", 415, kInvalidRequest,
             "unsupported_media_type", kInvalidArgument, 0, 415, "BadRequestException"},
    ErrorRow{kTemplate, "template", 422, "template_error", "Template error: ", 400, kInvalidRequest,
             "template_error", kInvalidArgument, 0, 400, ""},
    ErrorRow{kTool, "tool", 422, "tool_error", "Tool error: ", 400, kInvalidRequest, "tool_error",
             kInvalidArgument, 0, 400, ""},
    ErrorRow{kSuffix, "unsupported", 422, "suffix not supported", "", 400, kInvalidRequest,
             "unsupported", kUnimplemented, 0, 400, ""},
    ErrorRow{kBatchSize, "validation", 422, "batch size exceeded", "", 400, kInvalidRequest,
             "invalid_value", kInvalidArgument, 0, 400, ""},
    ErrorRow{kUnsupported, "unsupported", 422, "validation", "Input validation error: ", 400,
             kInvalidRequest, "unsupported", kUnimplemented, 0, 400, ""},
    ErrorRow{kUnauthorized, "unauthorized", 401, "unauthorized", "", 401, kInvalidRequest,
             "invalid_api_key", kUnauthenticated, 0, 401, "UnauthorizedException"},
    ErrorRow{kNotFound, "not_found", 404, "not_found", "", 404, kInvalidRequest, "not_found",
             kGrpcNotFound, 0, 404, "ResourceNotFoundException"},
    ErrorRow{kModelNotFound, "model_not_found", 404, "not_found", "", 404, kInvalidRequest,
             "model_not_found", kGrpcNotFound, 0, 404, "ModelNotFoundException"},
    ErrorRow{kMethodNotAllowed, "method", 405, "method_not_allowed", "", 405, kInvalidRequest,
             "method_not_allowed", kUnimplemented, 0, 405, "MethodNotAllowedException"},
    ErrorRow{kTooLarge, "too_large", 413, "",
             "Failed to buffer the request body: length limit exceeded: ", 413, kInvalidRequest,
             "request_too_large", kExhausted, 0, 413, "TooLongFrameException"},
    ErrorRow{kBadRequest, "http", 400, "bad_request", "", 400, kInvalidRequest, "bad_request",
             kInvalidArgument, 0, 400, "BadRequestException"},
    ErrorRow{kTimeout, "timeout", 408, "timeout", "", 408, "timeout_error", "request_timeout",
             kDeadlineExceeded, 0, 408, "BadRequestException"},
    ErrorRow{kOverloaded, "overloaded", 429, "overloaded", "", 429, "rate_limit_error",
             "queue_full", kExhausted, 1, 503, "WlmCapacityException"},
    ErrorRow{kUnavailable, "unavailable", 503, "unavailable", "", 503, "service_unavailable",
             "no_ready_shards", kGrpcUnavailable, 2, 503, "ServiceUnavailableException"},
    ErrorRow{kNoShard, "unavailable", 424, "generation",
             "Request failed during generation: Server error: error trying to connect: ", 503,
             "service_unavailable", "no_ready_shards", kGrpcUnavailable, 2, 503,
             "ServiceUnavailableException"},
    ErrorRow{kDeadline, "deadline", 504, "timeout", "", 504, "timeout_error", "deadline_exceeded",
             kDeadlineExceeded, 0, 504, "ServiceUnavailableException"},
    ErrorRow{kGeneration, "generation", 424, "generation",
             "Request failed during generation: Server error: ", 500, "server_error",
             "generation_failed", kGrpcInternal, 0, 424, ""},
    ErrorRow{kInternal, "internal", 500, "internal", "", 500, "server_error", "internal_error",
             kGrpcInternal, 0, 500, "InternalServerException"},
};

std::string ContextLength(const LengthExceeded& length) {
  const std::string limit = std::to_string(length.limit);
  const std::string prompt = std::to_string(length.prompt_tokens);
  std::string text = "This model's maximum context length is " + limit + " tokens. However, ";
  if (length.max_new_tokens == 0) return text + "your prompt has " + prompt + " tokens.";
  const auto total = std::uint64_t{length.prompt_tokens} + length.max_new_tokens;
  return text + "you requested " + std::to_string(total) + " tokens (" + prompt +
         " in the prompt, " + std::to_string(length.max_new_tokens) + " in the completion).";
}

std::string EffectiveLength(const LengthExceeded& length) {
  const std::string prompt = "`prompt` (" + std::to_string(length.prompt_tokens) + " tokens)";
  const std::string limit = " must be at most " + std::to_string(length.limit);
  if (length.max_new_tokens == 0) return prompt + limit;
  return prompt + " plus `num_tokens` (" + std::to_string(length.max_new_tokens) + ")" + limit;
}

std::string TgiBody(const ErrorRow& row, const ApiError& error) {
  const std::string message = TgiMessage(error);
  if (row.tgi_type.empty()) return message;
  std::string body = "{\"error\":";
  json::AppendString(body, message);
  body.append(",\"error_type\":");
  json::AppendString(body, row.tgi_type);
  return body + "}";
}

std::string EffectiveBody(const ErrorRow& row, const ApiError& error) {
  std::string body = "{\"error\":";
  json::AppendString(body, error.message);
  body.append(",\"error_type\":");
  json::AppendString(body, row.name);
  return body + "}";
}

std::string OpenAiBody(const ErrorRow& row, const ApiError& error) {
  std::string body = "{\"error\":{\"message\":";
  json::AppendString(body, error.message);
  body.append(",\"type\":");
  json::AppendString(body, row.openai_type);
  body.append(",\"param\":");
  if (error.field.empty()) {
    body.append("null");
  } else {
    json::AppendString(body, error.field);
  }
  body.append(",\"code\":");
  if (row.openai_code.empty()) {
    body.append("null");
  } else {
    json::AppendString(body, row.openai_code);
  }
  return body + "}}";
}

// The engine speaks of fields by the names of the native dialect.
std::string OpenAiField(const std::string& field) {
  if (field == "max_new_tokens") return "max_tokens";
  return field == "inputs" ? "" : field;  // `messages` or `prompt`
}

}  // namespace

std::string_view Name(Dialect dialect) {
  switch (dialect) {
    case Dialect::kTgi:
      return "tgi";
    case Dialect::kOpenAi:
      return "openai";
    case Dialect::kEffective:
      return "effective";
    case Dialect::kDjl:
      return "djl";
    case Dialect::kNative:
      break;
  }
  return "native";
}

std::span<const ErrorRow> ErrorTable() { return kTable; }

const ErrorRow& RowOf(ApiErrorKind kind) {
  return *std::find_if(kTable.begin(), kTable.end(),
                       [kind](const ErrorRow& row) { return row.kind == kind; });
}

ApiError FromEngine(const GenerationError& error, Dialect dialect) {
  ApiError api{kInternal, error.message, error.field};
  if (dialect == Dialect::kOpenAi) api.field = OpenAiField(error.field);
  switch (error.kind) {
    case ErrorKind::kValidation:
      api.kind = error.length ? kContextLength : kValidation;
      break;
    case ErrorKind::kTemplate:
      api.kind = kTemplate;
      break;
    case ErrorKind::kOverloaded:
      api.kind = kOverloaded;
      break;
    case ErrorKind::kUnavailable:
      api.kind = kUnavailable;
      break;
    case ErrorKind::kGeneration:
      api.kind = kGeneration;
      break;
    case ErrorKind::kInternal:
      break;
  }
  if (dialect == Dialect::kOpenAi && error.length) api.message = ContextLength(*error.length);
  if (dialect == Dialect::kEffective && error.length) api.message = EffectiveLength(*error.length);
  // TGI says the same whatever was full.
  if (dialect == Dialect::kTgi && api.kind == kOverloaded) api.message = "Model is overloaded";
  return api;
}

ApiError FromHttp(const HttpFailure& failure) {
  switch (failure.status) {
    case 408:
      return {kTimeout, failure.message, ""};
    case 413:
      return {kTooLarge, failure.message, ""};
    case 503:
      return {kUnavailable, failure.message, ""};
    default:
      return {kBadRequest, failure.message, ""};
  }
}

std::string TgiMessage(const ApiError& error) {
  return std::string(RowOf(error.kind).tgi_prefix) + error.message;
}

std::string ErrorBody(Dialect dialect, const ApiError& error) {
  const ErrorRow& row = RowOf(error.kind);
  if (dialect == Dialect::kOpenAi) return OpenAiBody(row, error);
  if (dialect == Dialect::kDjl) return djl::ErrorBody(row, error);
  return dialect == Dialect::kEffective ? EffectiveBody(row, error) : TgiBody(row, error);
}

HttpResponse ErrorResponse(Dialect dialect, const ApiError& error) {
  const ErrorRow& row = RowOf(error.kind);
  HttpResponse response;
  const bool openai = dialect == Dialect::kOpenAi;
  const bool djl = dialect == Dialect::kDjl;
  response.status = openai ? row.openai_status : djl ? row.djl_status : row.tgi_status;
  const bool plain = !openai && !djl && dialect != Dialect::kEffective && row.tgi_type.empty();
  response.content_type = plain ? "text/plain; charset=utf-8" : "application/json";
  response.body = ErrorBody(dialect, error);
  if (row.retry_after > 0) {
    response.headers.push_back({"retry-after", std::to_string(row.retry_after)});
    response.headers.push_back({"retry-after-ms", std::to_string(row.retry_after * 1000)});
    response.headers.push_back({"x-should-retry", "true"});
  }
  if (error.kind == kUnauthorized) response.headers.push_back({"www-authenticate", "Bearer"});
  return response;
}

}  // namespace penstock::router
