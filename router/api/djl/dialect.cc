#include "router/api/djl/dialect.h"

#include <array>
#include <utility>

#include "router/api/djl/request.h"
#include "router/api/docs/shapes.h"
#include "router/json/writer.h"

namespace penstock::router::djl {
namespace {

using enum ApiErrorKind;

struct Row {
  ApiErrorKind kind;
  int status;
  std::string_view type = {};  // of the front end's form; empty: the Python side's
};

constexpr std::array kTable = {
    Row{kValidation, 400},
    Row{kContextLength, 400},
    Row{kMalformedJson, 424},
    Row{kWrongType, 424},
    Row{kUnknownKey, 400},
    Row{kContentType, 415, "BadRequestException"},
    Row{kTemplate, 400},
    Row{kTool, 400},
    Row{kSuffix, 400},
    Row{kBatchSize, 400},
    Row{kUnsupported, 400},
    Row{kUnauthorized, 401, "UnauthorizedException"},
    Row{kNotFound, 404, "ResourceNotFoundException"},
    Row{kModelNotFound, 404, "ModelNotFoundException"},
    Row{kMethodNotAllowed, 405, "MethodNotAllowedException"},
    Row{kTooLarge, 413, "TooLongFrameException"},
    Row{kBadRequest, 400, "BadRequestException"},
    Row{kTimeout, 408, "BadRequestException"},
    Row{kOverloaded, 503, "WlmCapacityException"},
    Row{kBodyMemory, 503, "WlmCapacityException"},
    Row{kUnavailable, 503, "ServiceUnavailableException"},
    Row{kDraining, 503, "ServiceUnavailableException"},
    Row{kNoShard, 503, "ServiceUnavailableException"},
    Row{kDeadline, 504, "ServiceUnavailableException"},
    Row{kGeneration, 424},
    Row{kInternal, 500, "InternalServerException"},
};

class Format final : public ErrorFormat {
 public:
  int Status(ApiErrorKind kind) const override { return RowOf(kTable, kind).status; }

  std::string Body(const ApiError& error) const override {
    const Row& row = RowOf(kTable, error.kind);
    if (!row.type.empty()) {
      return json::ObjectText("code", row.status, "type", row.type, "message", error.message);
    }
    if (error.kind == kMalformedJson || error.kind == kWrongType) {
      return json::ObjectText("code", row.status, "error",
                              "Input Parsing failed. " + error.message);
    }
    return json::ObjectText("code", row.status, "error", error.message, "generated_text", nullptr,
                            "details", json::Object("finish_reason", "error"));
  }

  std::string_view Schema() const override { return "DjlErrorResponse"; }

  ApiError TooManyRequests(std::uint32_t most) const override {
    return {kOverloaded,
            "The queue of jobs is full: at most " + std::to_string(most) +
                " requests run and wait at the same time. Try again later",
            ""};
  }
};

constexpr docs::Shape kShapes[] = {
    {"DjlToken",
     "id:integer text:string log_prob?:number? logprob?:number? special?:boolean "
     "special_token?:boolean error_msg?:string"},
    {"DjlDetails",
     "finish_reason:string generated_tokens?:integer seed?:integer? inputs?:string "
     "tokens?:DjlToken[] prefill?:DjlToken[] top_tokens?:DjlToken[]"},
    {"DjlResponse", "generated_text:string details?:DjlDetails"},
    {"DjlErrorResponse",
     "code:integer type?:string message?:string error?:string generated_text?:string? "
     "details?:DjlDetails"},
    {"DjlPart", ":DjlResponse,DjlErrorResponse"},
    {"DjlAnswer", ":DjlResponse,DjlPart[]"},
    {"DjlStreamResponse",
     "index?:integer token:DjlToken top_tokens?:DjlToken[] generated_text?:string? code?:integer "
     "error?:string details?:DjlDetails"},
};

constexpr std::array<RouteDoc::Content, 3> kContents = {{
    {kJson, "DjlAnswer"},
    {"application/jsonlines", "DjlStreamResponse"},
    {kEvents, "DjlStreamResponse"},
}};

std::vector<Route> Routes(const DjlOptions& options) {
  const auto with_options = [&options](auto serve) -> Handler {
    return [options, serve](ApiContext& context, const HttpRequest& request,
                            std::shared_ptr<Exchange> exchange) {
      serve(context, options, request, std::move(exchange));
    };
  };
  return {
      Post("/predictions/{id}", with_options(Predictions),
           {.body = "DjlRequest", .contents = kContents, .path = "/predictions/{model}"}),
      Post("/models/{id}", with_options(InvokeModel),
           {.body = "DjlRequest", .contents = kContents, .path = "/models/{model}/invoke"}),
  };
}

class DjlDialect final : public Dialect {
 public:
  explicit DjlDialect(const DjlOptions& options) : Dialect(Routes(options)) {}
  const ErrorFormat& Errors() const override { return djl::Errors(); }
  void AppendSchemas(std::string& out) const override {
    AppendRequestSchemas(out);
    docs::AppendShapes(out, kShapes);
  }
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect(const DjlOptions& options) {
  return std::make_unique<DjlDialect>(options);
}

const ErrorFormat& Errors() {
  static const Format format;
  return format;
}

}  // namespace penstock::router::djl
