#include "router/api/djl/errors.h"

#include "router/json/writer.h"

namespace penstock::router::djl {

std::string ErrorBody(const ErrorRow& row, const ApiError& error) {
  std::string body = "{\"code\":" + std::to_string(row.djl_status);
  if (!row.djl_type.empty()) {
    body += ",\"type\":";
    json::AppendString(body, row.djl_type);
    body += ",\"message\":";
    json::AppendString(body, error.message);
    return body + "}";
  }
  const bool parsing =
      error.kind == ApiErrorKind::kMalformedJson || error.kind == ApiErrorKind::kWrongType;
  body += ",\"error\":";
  json::AppendString(body, (parsing ? "Input Parsing failed. " : "") + error.message);
  if (!parsing) body += ",\"generated_text\":null,\"details\":{\"finish_reason\":\"error\"}";
  return body + "}";
}

}  // namespace penstock::router::djl
