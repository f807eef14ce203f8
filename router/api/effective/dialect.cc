#include "router/api/effective/dialect.h"

#include <utility>

#include "router/api/docs/shapes.h"
#include "router/api/effective/request.h"
#include "router/api/tgi/dialect.h"
#include "router/json/writer.h"

namespace penstock::router::effective {
namespace {

class Format final : public ErrorFormat {
 public:
  int Status(ApiErrorKind kind) const override { return tgi::Errors().Status(kind); }

  std::string Body(const ApiError& error) const override {
    return json::ObjectText("error", error.message, "error_type", NameOf(error.kind));
  }

  std::string_view Schema() const override { return "ErrorResponse"; }

  ApiError FromEngine(const GenerationError& error, const ApiOptions&) const override {
    ApiError api = router::FromEngine(error);
    if (api.field == "inputs") RenameField(api, "prompt");
    if (api.field == "max_new_tokens") RenameField(api, "num_tokens");
    if (!error.length) return api;
    const LengthExceeded& length = *error.length;
    api.message = std::string("`prompt` (") + (length.at_least ? "at least " : "") +
                  std::to_string(length.prompt_tokens) + " tokens)";
    if (length.max_new_tokens > 0) {
      api.message += " plus `num_tokens` (" + std::to_string(length.max_new_tokens) + ")";
    }
    api.message += " must be at most " + std::to_string(length.limit);
    return api;
  }
};

constexpr docs::Shape kShapes[] = {
    {"InferenceDetails",
     "request:integer prompt_tokens:integer seed:integer queue_ms:number first_token_ms:number "
     "total_ms:number tokens:integer[]"},
    {"InferenceResponse", "completion:string details?:InferenceDetails"},
    {"Spread", "count:integer mean:number p50:number p90:number p99:number max:number"},
    {"Stats",
     "latency-per-token:number throughput:number total-tokens-handled:integer "
     "total-elapsed-time:number batching:string requests:integer failed:integer "
     "in-flight:integer wall-clock-seconds:number tokens-per-second:number "
     "requests-per-second:number latency-seconds:Spread "
     "latency-from-intended-arrival-seconds:Spread time-to-first-token-seconds:Spread "
     "inter-token-latency-seconds:Spread breakdown:number{}"},
    {"StatsReset", "reset:boolean"},
};

std::vector<Route> Routes(const std::string& batching) {
  const auto book = std::make_shared<StatsBook>();
  const auto inference = [book](ApiContext& context, const HttpRequest& request,
                                std::shared_ptr<Exchange> exchange) {
    Inference(context, book, request, std::move(exchange));
  };
  const auto stats = [book, batching](ApiContext&, const HttpRequest&,
                                      const std::shared_ptr<Exchange>& exchange) {
    exchange->Respond(JsonResponse(book->ToJson(batching)));
  };
  const auto reset = [book](ApiContext&, const HttpRequest&,
                            const std::shared_ptr<Exchange>& exchange) {
    book->Reset();
    exchange->Respond(JsonResponse("{\"reset\":true}"));
  };
  Route get = Get("/stats", stats, {.contents = {{{kJson, "Stats"}}}});
  get.quiet = true;
  return {Post("/inference", inference,
               {.body = "InferenceRequest", .contents = {{{kJson, "InferenceResponse"}}}}),
          std::move(get), Delete("/stats", reset, {.contents = {{{kJson, "StatsReset"}}}})};
}

class EffectiveDialect final : public Dialect {
 public:
  explicit EffectiveDialect(const std::string& batching) : Dialect(Routes(batching)) {}
  const ErrorFormat& Errors() const override { return effective::Errors(); }
  void AppendSchemas(std::string& out) const override {
    AppendRequestSchema(out);
    docs::AppendShapes(out, kShapes);
  }
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect(const std::string& batching) {
  return std::make_unique<EffectiveDialect>(batching);
}

const ErrorFormat& Errors() {
  static const Format format;
  return format;
}

}  // namespace penstock::router::effective
