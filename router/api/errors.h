// One table: kind of error → HTTP status, gRPC code, dialect body, retry advice.
//
// Texts are part of the interface: clients match them (LiteLLM looks for "maximum context length
// is", TGI's clients for its error_type). They are frozen by tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "router/engine.h"
#include "router/http/message.h"

namespace penstock::router {

enum class Dialect : std::uint8_t { kTgi, kOpenAi, kEffective, kDjl, kNative };
std::string_view Name(Dialect dialect);

enum class ApiErrorKind : std::uint8_t {
  kValidation,     // a value is outside its limits
  kContextLength,  // prompt, or prompt plus answer, too long
  kMalformedJson,
  kWrongType,  // JSON of another shape than the dialect's
  kContentType,
  kTemplate,
  kTool,         // tools of TGI's chats
  kSuffix,       // TGI's completions
  kBatchSize,    // more prompts than one request may have
  kUnsupported,  // a feature that this server does not have
  kUnauthorized,
  kNotFound,
  kModelNotFound,
  kMethodNotAllowed,
  kTooLarge,    // the body
  kBadRequest,  // framing and limits of HTTP itself
  kTimeout,     // the client was too slow to send
  kOverloaded,
  kUnavailable,
  kNoShard,   // the same for TGI's clients, where the shards' sockets refuse connections
  kDeadline,  // the answer took too long
  kGeneration,
  kInternal,
};

struct ApiError {
  ApiErrorKind kind = ApiErrorKind::kInternal;
  std::string message;  // one line: field, value, limit
  std::string field;    // the key at fault, where there is one
};

struct ErrorRow {
  ApiErrorKind kind;
  std::string_view name;  // label in metrics
  int tgi_status;
  std::string_view tgi_type;    // empty: plain text, as TGI's framework answers
  std::string_view tgi_prefix;  // in front of the message
  int openai_status;
  std::string_view openai_type;
  std::string_view openai_code;  // empty: null
  int grpc_code;                 // google.rpc.Code
  int retry_after;               // seconds; 0: no advice
  int djl_status;
  std::string_view djl_type;  // empty: its Python side's body, else its front end's
};

std::span<const ErrorRow> ErrorTable();
const ErrorRow& RowOf(ApiErrorKind kind);

// The engine's error in the words of a dialect (they differ for lengths).
ApiError FromEngine(const GenerationError& error, Dialect dialect);
// The HTTP side's failure.
ApiError FromHttp(const HttpFailure& failure);

// The JSON (or text) alone, as an event stream carries it, and the whole answer.
// The message with the prefix that TGI gives it.
std::string TgiMessage(const ApiError& error);
std::string ErrorBody(Dialect dialect, const ApiError& error);
HttpResponse ErrorResponse(Dialect dialect, const ApiError& error);

}  // namespace penstock::router
