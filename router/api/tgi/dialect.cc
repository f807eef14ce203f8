#include "router/api/tgi/dialect.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "router/api/console/dialect.h"
#include "router/api/docs/openapi.h"
#include "router/api/metrics_page.h"
#include "router/api/sglang/dialect.h"
#include "router/api/tgi/generate/flow.h"
#include "router/api/tgi/handlers.h"

namespace penstock::router::tgi {
namespace {

using Reply = std::shared_ptr<Exchange>;

Handler GenerateWith(Flow flow) {
  return [flow](ApiContext& context, HttpRequest request, Reply reply) {
    Serve(context, flow, std::move(request), std::move(reply));
  };
}

Handler InfoWith(bool own_keys) {
  return [own_keys](ApiContext& context, const HttpRequest&, const Reply& reply) {
    Info(context, *reply, own_keys);
  };
}

// A browser gets `page`.
Handler HealthOr(Handler page) {
  return [page = std::move(page)](ApiContext& context, HttpRequest request, Reply reply) {
    const bool html = request.head.Find("accept").find("text/html") != std::string_view::npos;
    if (html) return page(context, std::move(request), std::move(reply));
    Health(context, std::move(request), std::move(reply));
  };
}

// `root` answers GET /.
std::vector<Route> SharedRoutes(bool own_keys, Handler root) {
  const Flow generate{.route = "/generate", .own_keys = own_keys};
  const Flow stream{.route = "/generate_stream", .mode = Mode::kStream, .own_keys = own_keys};
  const Flow compat{.route = "/", .compat = true, .own_keys = own_keys};
  return {
      own_keys ? Post("/generate", sglang::GenerateOr(GenerateWith(generate)),
                      {.body = "GenerateRequest,SglangGenerateRequest",
                       .contents = {{{kJson, "GenerateResponse,SglangResult,SglangResults"},
                                     {kEvents, "SglangResult"}}},
                       .failure = "SglangErrorResponse"})
               : Post("/generate", GenerateWith(generate),
                      {.body = "GenerateRequest", .contents = {{{kJson, "GenerateResponse"}}}}),
      Post("/generate_stream", GenerateWith(stream),
           {.body = "GenerateRequest",
            .contents = {{{kEvents, "StreamResponse"}}},
            .failure = "ErrorResponse"}),
      Post("/", GenerateWith(compat),
           {.body = "CompatGenerateRequest",
            .contents = {{{kJson, "CompatGenerateResponse"}, {kEvents, "StreamResponse"}}},
            .failure = "ErrorResponse"}),
      Post("/vertex", Vertex, {.body = "VertexRequest", .contents = {{{kJson, "VertexResponse"}}}}),
      own_keys ? Post("/tokenize", TokenizeEither,
                      {.body = "GenerateRequest,TokenizeRequest",
                       .contents = {{{kJson, "TokenizeResponse,TokensResponse"}}}})
               : Post("/tokenize", Tokenize,
                      {.body = "GenerateRequest", .contents = {{{kJson, "TokenizeResponse"}}}}),
      Public(Post("/chat_tokenize", ChatTokenize,
                  {.body = "ChatRequest", .contents = {{{kJson, "ChatTokenizeResponse"}}}})),
      Probe("/health", Health, {.unavailable = "ErrorResponse"}),
      Probe("/ping", Health, {.unavailable = "ErrorResponse"}),
      Public(Get("/docs", docs::Redirect, {.redirect = "/docs/"})),
      Public(Get("/docs/", docs::Page, {.contents = {{{"text/html", "string"}}}})),
      Public(Get("/api-doc/openapi.json", docs::Document, {.contents = {{{kJson, "object"}}}})),
      Public(Get("/info", InfoWith(own_keys), {.contents = {{{kJson, "Info"}}}})),
      Probe("/", std::move(root), {.unavailable = "ErrorResponse"}),
  };
}

void MetricsPage(ApiContext& context, const HttpRequest& request, const Reply& reply) {
  reply->Respond({200, "text/plain; charset=utf-8", {}, MetricsPageFor(context, request.head)});
}

// Routes that belong to other dialects unless the server replaces TGI's router.
std::vector<Route> StandInRoutes() {
  const auto invocations = [](ApiContext& context, HttpRequest request, Reply reply) {
    Invocations(context, std::move(request), std::move(reply), false);
  };
  return {
      Post("/invocations", invocations,
           {.body = "CompatGenerateRequest,ChatRequest,CompletionRequest",
            .contents = {{{kJson, "CompatGenerateResponse,ChatCompletion,CompletionFinal"},
                          {kEvents, "StreamResponse,ChatCompletionChunk,Chunk"}}},
            .failure = "ErrorResponse or ChatStreamFailure"}),
      Post("/v1/chat/completions", ChatCompletions,
           {.body = "ChatRequest",
            .contents = {{{kJson, "ChatCompletion"}, {kEvents, "ChatCompletionChunk"}}},
            .failure = "ChatStreamFailure"}),
      Post("/v1/completions", Completions,
           {.body = "CompletionRequest",
            .contents = {{{kJson, "CompletionFinal"}, {kEvents, "Chunk"}}},
            .failure = "ChatStreamFailure"}),
      Public(Get("/v1/models", Models, {.contents = {{{kJson, "ModelsInfo"}}}})),
      Probe("/metrics", MetricsPage, {.contents = {{{"text/plain", "string"}}}}),
  };
}

std::vector<Route> AllStandInRoutes() {
  std::vector<Route> routes = SharedRoutes(false, Health);
  std::ranges::move(StandInRoutes(), std::back_inserter(routes));
  return routes;
}

class TgiDialect : public Dialect {
 public:
  explicit TgiDialect(std::vector<Route> routes) : Dialect(std::move(routes)) {}
  const ErrorFormat& Errors() const override { return tgi::Errors(); }
  void AppendSchemas(std::string& out) const override { tgi::AppendSchemas(out); }
};

// Beside TGI's routes it serves bodies of SGLang's on one of their paths.
class SharedDialect final : public TgiDialect {
 public:
  explicit SharedDialect(bool console)
      : TgiDialect(SharedRoutes(true, HealthOr(console ? console::Page : docs::Redirect))) {}
  std::vector<const ErrorFormat*> DocumentedErrors() const override {
    return {&tgi::Errors(), &sglang::Errors()};
  }
};

// TGI's HTTP framework refuses with an empty body where other servers say why.
class StandInDialect final : public TgiDialect {
 public:
  StandInDialect() : TgiDialect(AllStandInRoutes()) {}

  HttpResponse Reword(HttpResponse response) const override {
    if (response.status == 401 || response.status == 404 || response.status == 405) {
      response.content_type.clear();
      response.body.clear();
    } else if (response.status == 413) {
      response.body = "Failed to buffer the request body: length limit exceeded";
    }
    return response;
  }

  bool NamesIgnoredKeys() const override { return false; }

  CorsRules Cors() const override {
    return {.methods = "GET,POST", .request_headers = {"content-type"}, .exposed = ""};
  }
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect(bool console) {
  return std::make_unique<SharedDialect>(console);
}

std::unique_ptr<const Dialect> MakeStandInDialect() { return std::make_unique<StandInDialect>(); }

}  // namespace penstock::router::tgi
