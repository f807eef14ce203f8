#include "router/api/routes.h"

#include "router/api/djl/handlers.h"
#include "router/api/effective/handlers.h"
#include "router/api/native/handlers.h"
#include "router/api/openai/handlers.h"
#include "router/api/tgi/handlers.h"

namespace penstock::router {
namespace {

constexpr std::string_view kId = "{id}";

constexpr Route kRoutes[] = {
    // TGI
    {"POST", "/generate", Dialect::kTgi, tgi::Generate},
    {"POST", "/generate_stream", Dialect::kTgi, tgi::GenerateStream},
    {"POST", "/", Dialect::kTgi, tgi::Compat},
    {"POST", "/invocations", Dialect::kTgi, djl::Invocations},
    {"POST", "/vertex", Dialect::kTgi, tgi::Vertex},
    {"POST", "/tokenize", Dialect::kTgi, tgi::Tokenize},
    {"POST", "/chat_tokenize", Dialect::kTgi, tgi::ChatTokenize, Access::kPublic},
    {"GET", "/info", Dialect::kTgi, tgi::Info, Access::kPublic},
    {"GET", "/health", Dialect::kTgi, native::Health, Access::kPublic, true},
    {"GET", "/ping", Dialect::kTgi, native::Health, Access::kPublic, true},
    {"GET", "/", Dialect::kTgi, native::Root, Access::kPublic, true},
    {"GET", "/docs", Dialect::kTgi, tgi::DocsRedirect, Access::kPublic},
    {"GET", "/docs/", Dialect::kTgi, tgi::Docs, Access::kPublic},
    {"GET", "/api-doc/openapi.json", Dialect::kTgi, tgi::OpenApiDocument, Access::kPublic},
    // DJL-Serving
    {"POST", "/predictions/{id}", Dialect::kDjl, djl::Predictions},
    {"POST", "/models/{id}", Dialect::kDjl, djl::InvokeModel},
    // OpenAI
    {"POST", "/v1/chat/completions", Dialect::kOpenAi, openai::ChatCompletions, Access::kKey, false,
     Profiles::kPenstock},
    {"POST", "/v1/completions", Dialect::kOpenAi, openai::Completions, Access::kKey, false,
     Profiles::kPenstock},
    {"GET", "/v1/models", Dialect::kOpenAi, openai::Models, Access::kPublic},
    {"GET", "/v1/models/{id}", Dialect::kOpenAi, openai::Model, Access::kPublic, false,
     Profiles::kPenstock},
    {"POST", "/v1/chat/completions", Dialect::kTgi, tgi::ChatCompletions, Access::kKey, false,
     Profiles::kTgi},
    {"POST", "/v1/completions", Dialect::kTgi, tgi::Completions, Access::kKey, false,
     Profiles::kTgi},
    // effective-batching's
    {"POST", "/inference", Dialect::kEffective, effective::Inference},
    {"GET", "/stats", Dialect::kEffective, effective::Stats, Access::kKey, true},
    {"DELETE", "/stats", Dialect::kEffective, effective::ResetStats},
    // Our own
    {"GET", "/live", Dialect::kNative, native::Live, Access::kPublic, true},
    {"GET", "/ready", Dialect::kNative, native::Ready, Access::kPublic, true},
    {"GET", "/metrics", Dialect::kNative, native::MetricsPage, Access::kPublic, true},
    {"GET", "/requests/{id}", Dialect::kNative, native::Request},
    {"GET", "/cached_prompts", Dialect::kNative, native::CachedPrompts},
    {"DELETE", "/cached_prompts", Dialect::kNative, native::ForgetCachedPrompts},
    {"DELETE", "/cached_prompts/{id}", Dialect::kNative, native::ForgetCachedPrompts},
};

}  // namespace

std::span<const Route> Routes() { return kRoutes; }

bool IsServed(const Route& route, bool tgi_profile) {
  return route.profiles == Profiles::kAll || (route.profiles == Profiles::kTgi) == tgi_profile;
}

bool Generates(const Route& route) {
  return route.method == "POST" && !route.pattern.ends_with("tokenize");
}

bool Matches(const Route& route, std::string_view path) {
  if (!route.pattern.ends_with(kId)) return route.pattern == path;
  const std::string_view prefix = route.pattern.substr(0, route.pattern.size() - kId.size());
  return path.size() > prefix.size() && path.starts_with(prefix);
}

std::string_view PathId(const Route& route, std::string_view path) {
  if (!route.pattern.ends_with(kId)) return {};
  return path.substr(route.pattern.size() - kId.size());
}

}  // namespace penstock::router
