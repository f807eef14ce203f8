#include "router/api/errors.h"

#include <array>

namespace penstock::router {
namespace {

using enum ApiErrorKind;

struct Row {
  ApiErrorKind kind;
  std::string_view name;
  int retry_after = 0;
};

constexpr std::array kTable = {
    Row{kValidation, "validation"},
    Row{kContextLength, "validation"},
    Row{kMalformedJson, "json"},
    Row{kWrongType, "type"},
    Row{kContentType, "content_type"},
    Row{kTemplate, "template"},
    Row{kTool, "tool"},
    Row{kSuffix, "unsupported"},
    Row{kBatchSize, "validation"},
    Row{kUnsupported, "unsupported"},
    Row{kUnauthorized, "unauthorized"},
    Row{kNotFound, "not_found"},
    Row{kModelNotFound, "model_not_found"},
    Row{kMethodNotAllowed, "method"},
    Row{kTooLarge, "too_large"},
    Row{kBadRequest, "http"},
    Row{kTimeout, "timeout"},
    Row{kOverloaded, "overloaded", 1},
    Row{kUnavailable, "unavailable", 2},
    Row{kNoShard, "unavailable", 2},
    Row{kDeadline, "deadline"},
    Row{kGeneration, "generation"},
    Row{kInternal, "internal"},
};

ApiErrorKind KindOf(const GenerationError& error) {
  switch (error.kind) {
    case ErrorKind::kValidation:
      return error.length ? kContextLength : kValidation;
    case ErrorKind::kTemplate:
      return kTemplate;
    case ErrorKind::kOverloaded:
      return kOverloaded;
    case ErrorKind::kUnavailable:
      return kUnavailable;
    case ErrorKind::kGeneration:
      return kGeneration;
    case ErrorKind::kInternal:
      break;
  }
  return kInternal;
}

}  // namespace

std::string_view NameOf(ApiErrorKind kind) { return RowOf(kTable, kind).name; }

int RetryAfter(ApiErrorKind kind) { return RowOf(kTable, kind).retry_after; }

ApiError FromEngine(const GenerationError& error) {
  return {KindOf(error), error.message, error.field};
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

ApiError TooManyRequests(std::uint32_t max_concurrent_requests) {
  return {kOverloaded,
          "too many concurrent requests; at most " + std::to_string(max_concurrent_requests) +
              " are taken",
          ""};
}

}  // namespace penstock::router
