// Kinds of errors that a client may see. Each dialect has its own table of statuses and texts.
//
// Texts are part of the interface: clients match them (LiteLLM looks for "maximum context length
// is", TGI's clients for its error_type). Tests freeze them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "router/engine.h"
#include "router/http/message.h"
#include "router/json/reader.h"

namespace penstock::router {

enum class ApiErrorKind : std::uint8_t {
  kValidation,     // a value is outside its limits
  kContextLength,  // prompt, or prompt plus answer, too long
  kMalformedJson,
  kWrongType,   // JSON of another shape than the dialect's
  kUnknownKey,  // under --strict-json
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
  kBodyMemory,   // all bodies together are too large
  kUnavailable,  // no replica group is up
  kDraining,     // the server finishes its requests and takes no more
  kNoShard,      // no group is up, for TGI's clients: the shards' sockets refuse connections
  kDeadline,     // the answer took too long
  kGeneration,
  kInternal,
};

struct ApiError {
  ApiErrorKind kind = ApiErrorKind::kInternal;
  std::string message;  // one line: field, value, limit
  std::string field;    // the key at fault, where there is one
  int retry_after = 0;  // seconds; 0: those of its kind
};

// The label of a kind in metrics.
std::string_view NameOf(ApiErrorKind kind);
// Seconds after which a client may try again after any error of this kind; 0: no advice.
int RetryAfter(ApiErrorKind kind);

// The row of a dialect's table whose member `kind` has this value.
template <class Table>
constexpr const auto& RowOf(const Table& table, ApiErrorKind kind) {
  for (const auto& row : table) {
    if (row.kind == kind) return row;
  }
  return table.back();  // kInternal
}

// "`field` WHY": a value is wrong, or a feature is not there.
ApiError Invalid(std::string_view field, std::string_view why);
ApiError Unsupported(std::string_view field, std::string_view why);
// "`field` must be LIMIT. Given: VALUE"
ApiError MustBe(std::string_view field, std::string_view limit, std::string_view given);

// Calls the field at fault, also in the message, as the client's dialect does.
void RenameField(ApiError& error, std::string name);

// The API error for an error of the engine, of the HTTP side, or of the reader of a body.
ApiError FromEngine(const GenerationError& error);
ApiError FromHttp(const HttpFailure& failure);
ApiError FromJson(const json::Error& error);
// That of the reader where clients do not expect serde's texts: "`input` is missing".
ApiError FromJsonInWords(const json::Error& error);

}  // namespace penstock::router
