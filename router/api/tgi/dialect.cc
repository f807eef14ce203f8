#include "router/api/tgi/dialect.h"

#include <string_view>
#include <utility>
#include <vector>

#include "router/api/docs/openapi.h"
#include "router/api/tgi/errors.h"
#include "router/api/tgi/generate/flow.h"
#include "router/api/tgi/handlers.h"
#include "router/api/tgi/schemas.h"

namespace penstock::router::tgi {
namespace {

using Request = HttpRequest;
using Reply = std::shared_ptr<Exchange>;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kEvents = "text/event-stream";

Handler GenerateWith(Flow flow) {
  return [flow](ApiContext& context, Request request, Reply reply) {
    Serve(context, flow, std::move(request), std::move(reply));
  };
}

Handler InfoWith(bool own_keys) {
  return [own_keys](ApiContext& context, const Request&, const Reply& reply) {
    Info(context, *reply, own_keys);
  };
}

// A browser is sent to the page about the routes.
void HealthOrDocs(ApiContext& context, Request request, Reply reply) {
  const bool page = request.head.Find("accept").find("text/html") != std::string_view::npos;
  const auto answer = page ? docs::Redirect : Health;
  answer(context, std::move(request), std::move(reply));
}

std::vector<Route> GenerateRoutes(bool own_keys) {
  return {
      {.method = "POST",
       .pattern = "/generate",
       .handler = GenerateWith({.route = "/generate", .own_keys = own_keys}),
       .doc = {.body = "GenerateRequest", .contents = {{{kJson, "GenerateResponse"}}}}},
      {.method = "POST",
       .pattern = "/generate_stream",
       .handler =
           GenerateWith({.route = "/generate_stream", .mode = Mode::kStream, .own_keys = own_keys}),
       .doc = {.body = "GenerateRequest",
               .contents = {{{kEvents, "StreamResponse"}}},
               .failure = "ErrorResponse"}},
      {.method = "POST",
       .pattern = "/",
       .handler = GenerateWith({.route = "/", .compat = true, .own_keys = own_keys}),
       .doc = {.body = "CompatGenerateRequest",
               .contents = {{{kJson, "CompatGenerateResponse"}, {kEvents, "StreamResponse"}}},
               .failure = "ErrorResponse"}},
  };
}

std::vector<Route> SharedRoutes() {
  return {
      {.method = "POST",
       .pattern = "/vertex",
       .handler = Vertex,
       .doc = {.body = "VertexRequest", .contents = {{{kJson, "VertexResponse"}}}}},
      {.method = "POST",
       .pattern = "/tokenize",
       .handler = Tokenize,
       .doc = {.body = "GenerateRequest", .contents = {{{kJson, "TokenizeResponse"}}}}},
      {.method = "POST",
       .pattern = "/chat_tokenize",
       .handler = ChatTokenize,
       .access = Access::kPublic,
       .doc = {.body = "ChatRequest", .contents = {{{kJson, "ChatTokenizeResponse"}}}}},
      {.method = "GET",
       .pattern = "/health",
       .handler = Health,
       .access = Access::kPublic,
       .quiet = true,
       .doc = {.unavailable = "ErrorResponse"}},
      {.method = "GET",
       .pattern = "/ping",
       .handler = Health,
       .access = Access::kPublic,
       .quiet = true,
       .doc = {.unavailable = "ErrorResponse"}},
      {.method = "GET",
       .pattern = "/docs",
       .handler = docs::Redirect,
       .access = Access::kPublic,
       .doc = {.redirect = "/docs/"}},
      {.method = "GET",
       .pattern = "/docs/",
       .handler = docs::Page,
       .access = Access::kPublic,
       .doc = {.contents = {{{"text/html", "string"}}}}},
      {.method = "GET",
       .pattern = "/api-doc/openapi.json",
       .handler = docs::Document,
       .access = Access::kPublic,
       .doc = {.contents = {{{kJson, "object"}}}}},
  };
}

std::vector<Route> ProbeRoutes(bool own_keys) {
  return {
      {.method = "GET",
       .pattern = "/info",
       .handler = InfoWith(own_keys),
       .access = Access::kPublic,
       .doc = {.contents = {{{kJson, "Info"}}}}},
      {.method = "GET",
       .pattern = "/",
       .handler = own_keys ? HealthOrDocs : Health,
       .access = Access::kPublic,
       .quiet = true,
       .doc = {.unavailable = "ErrorResponse"}},
  };
}

// Routes that belong to other dialects unless the server replaces TGI's router.
std::vector<Route> StandInRoutes() {
  return {
      {.method = "POST",
       .pattern = "/invocations",
       .handler =
           [](ApiContext& context, Request request, Reply reply) {
             Invocations(context, std::move(request), std::move(reply), false);
           },
       .doc = {.body = "CompatGenerateRequest,ChatRequest,CompletionRequest",
               .contents = {{{kJson, "CompatGenerateResponse,ChatCompletion,CompletionFinal"},
                             {kEvents, "StreamResponse,ChatCompletionChunk,Chunk"}}},
               .failure = "ErrorResponse or ChatStreamFailure"}},
      {.method = "POST",
       .pattern = "/v1/chat/completions",
       .handler = ChatCompletions,
       .doc = {.body = "ChatRequest",
               .contents = {{{kJson, "ChatCompletion"}, {kEvents, "ChatCompletionChunk"}}},
               .failure = "ChatStreamFailure"}},
      {.method = "POST",
       .pattern = "/v1/completions",
       .handler = Completions,
       .doc = {.body = "CompletionRequest",
               .contents = {{{kJson, "CompletionFinal"}, {kEvents, "Chunk"}}},
               .failure = "ChatStreamFailure"}},
      {.method = "GET",
       .pattern = "/v1/models",
       .handler = Models,
       .access = Access::kPublic,
       .doc = {.contents = {{{kJson, "ModelsInfo"}}}}},
      {.method = "GET",
       .pattern = "/metrics",
       .handler =
           [](ApiContext& context, const Request&, const Reply& reply) {
             reply->Respond({200, "text/plain; charset=utf-8", {}, context.metrics.Render()});
           },
       .access = Access::kPublic,
       .quiet = true,
       .doc = {.contents = {{{"text/plain", "string"}}}}},
  };
}

std::vector<Route> Routes(bool own_keys) {
  std::vector<Route> routes = GenerateRoutes(own_keys);
  const auto add = [&routes](std::vector<Route> more) {
    std::move(more.begin(), more.end(), std::back_inserter(routes));
  };
  add(SharedRoutes());
  add(ProbeRoutes(own_keys));
  if (!own_keys) add(StandInRoutes());
  return routes;
}

class TgiDialect : public Dialect {
 public:
  explicit TgiDialect(bool own_keys) : Dialect(Routes(own_keys)) {}
  const ErrorFormat& Errors() const override { return tgi::Errors(); }
  void AppendSchemas(std::string& out) const override { tgi::AppendSchemas(out); }
};

// TGI's HTTP framework refuses with an empty body where other servers say why.
class StandInDialect final : public TgiDialect {
 public:
  StandInDialect() : TgiDialect(false) {}

  HttpResponse Reword(HttpResponse response) const override {
    if (response.status == 401 || response.status == 404 || response.status == 405) {
      response.content_type.clear();
      response.body.clear();
    } else if (response.status == 413) {
      response.body = "Failed to buffer the request body: length limit exceeded";
    }
    return response;
  }
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect() { return std::make_unique<TgiDialect>(true); }

std::unique_ptr<const Dialect> MakeStandInDialect() { return std::make_unique<StandInDialect>(); }

}  // namespace penstock::router::tgi
