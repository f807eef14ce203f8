#include "router/api/tgi/dialect.h"

#include <array>

#include "router/api/context.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

using enum ApiErrorKind;

struct Row {
  ApiErrorKind kind;
  int status;
  std::string_view type;         // empty: plain text
  std::string_view prefix = {};  // of the message
};

constexpr std::string_view kInvalid = "Input validation error: ";

constexpr std::array kTable = {
    Row{kValidation, 422, "validation", kInvalid},
    Row{kContextLength, 422, "validation", kInvalid},
    Row{kMalformedJson, 400, "", "Failed to parse the request body as JSON: "},
    Row{kWrongType, 422, "", "Failed to deserialize the JSON body into the target type: "},
    Row{kUnknownKey, 400, "validation", kInvalid},
    Row{kContentType, 415, ""},
    Row{kTemplate, 422, "template_error", "Template error: "},
    Row{kTool, 422, "tool_error", "Tool error: "},
    Row{kSuffix, 422, "suffix not supported"},
    Row{kBatchSize, 422, "batch size exceeded"},
    Row{kUnsupported, 422, "validation", kInvalid},
    Row{kUnauthorized, 401, "unauthorized"},
    Row{kNotFound, 404, "not_found"},
    Row{kModelNotFound, 404, "not_found"},
    Row{kMethodNotAllowed, 405, "method_not_allowed"},
    Row{kTooLarge, 413, "", "Failed to buffer the request body: length limit exceeded: "},
    Row{kBadRequest, 400, "bad_request"},
    Row{kTimeout, 408, "timeout"},
    Row{kOverloaded, 429, "overloaded"},
    Row{kBodyMemory, 503, "overloaded"},
    Row{kUnavailable, 503, "unavailable"},
    Row{kDraining, 503, "unavailable"},
    Row{kNoShard, 424, "generation",
        "Request failed during generation: Server error: error trying to connect: "},
    Row{kDeadline, 504, "timeout"},
    Row{kGeneration, 424, "generation", "Request failed during generation: Server error: "},
    Row{kInternal, 500, "internal"},
};

class Format final : public ErrorFormat {
 public:
  int Status(ApiErrorKind kind) const override { return RowOf(kTable, kind).status; }

  std::string_view ContentType(ApiErrorKind kind) const override {
    return RowOf(kTable, kind).type.empty() ? "text/plain; charset=utf-8" : "application/json";
  }

  std::string Body(const ApiError& error) const override {
    const std::string_view type = RowOf(kTable, error.kind).type;
    const std::string message = TgiMessage(error);
    return type.empty() ? message : json::ObjectText("error", message, "error_type", type);
  }

  std::string_view Schema() const override { return "ErrorResponse"; }

  ApiError FromEngine(const GenerationError& error, const ApiOptions& options) const override {
    ApiError api = router::FromEngine(error);
    // TGI has one text for all kinds of overload.
    if (api.kind == kOverloaded) api.message = "Model is overloaded";
    if (api.kind != kUnavailable || options.connect_error == nullptr) return api;
    if (auto why = options.connect_error()) return {kNoShard, *std::move(why), ""};
    return api;
  }
};

}  // namespace

const ErrorFormat& Errors() {
  static const Format format;
  return format;
}

std::string TgiMessage(const ApiError& error) {
  return std::string(RowOf(kTable, error.kind).prefix) + error.message;
}

}  // namespace penstock::router::tgi
