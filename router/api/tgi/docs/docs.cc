#include <string>
#include <utility>

#include "router/api/djl/request.h"
#include "router/api/effective/request.h"
#include "router/json/writer.h"
#include "router/api/openai/request.h"
#include "router/api/routes.h"
#include "router/api/tgi/handlers.h"
#include "router/api/tgi/docs/openapi.h"
#include "router/api/tgi/docs/responses.h"
#include "router/api/tgi/docs/schemas.h"
#include "router/api/tgi/generate/shapes.h"

namespace penstock::router::tgi {
namespace {

// The request body of a POST.
std::string_view BodyOf(const Route& route, bool tgi_profile) {
  const std::string_view pattern = route.pattern;
  if (route.dialect == Dialect::kDjl) return "DjlRequest";
  if (route.dialect == Dialect::kEffective) return "InferenceRequest";
  if (route.dialect == Dialect::kOpenAi) {
    return pattern == "/v1/completions" ? "OpenAiCompletionRequest" : "OpenAiChatRequest";
  }
  if (pattern == "/") return "CompatGenerateRequest";
  if (pattern == "/invocations") {
    return tgi_profile ? "CompatGenerateRequest,ChatRequest,CompletionRequest"
                       : "CompatGenerateRequest,ChatRequest,CompletionRequest,DjlRequest,"
                         "OpenAiChatRequest";
  }
  if (pattern == "/v1/chat/completions" || pattern == "/chat_tokenize") return "ChatRequest";
  if (pattern == "/v1/completions") return "CompletionRequest";
  return pattern == "/vertex" ? "VertexRequest" : "GenerateRequest";
}

// As a client writes it: DJL-Serving's names the model, and behind it what to do with it.
std::string PathOf(const Route& route) {
  if (route.dialect != Dialect::kDjl) return std::string(route.pattern);
  const std::string prefix(route.pattern.substr(0, route.pattern.find('{')));
  return prefix + (prefix == "/models/" ? "{model}/invoke" : "{model}");
}

void AppendOperation(std::string& out, const Route& route, bool tgi_profile) {
  out += '"';
  for (const char c : route.method) out += static_cast<char>(c - 'A' + 'a');
  out += "\":{";
  const std::string path = PathOf(route);
  if (const std::size_t open = path.find('{'); open != path.npos) {
    out += "\"parameters\":[{\"name\":";
    json::AppendString(out, path.substr(open + 1, path.find('}') - open - 1));
    out += ",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\"}}],";
  }
  if (route.method == "POST") {
    out += "\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":";
    AppendType(out, BodyOf(route, tgi_profile));
    out += "}}},";
  }
  if (route.access == Access::kKey) out += "\"security\":[{\"ApiKey\":[]}],";
  AppendResponses(out, route, tgi_profile);
  out += '}';
}

}  // namespace

// All routes of the profile, in the order of the table; the operations of a path together.
std::string OpenApi(bool tgi_profile, const std::string& version) {
  std::string out =
      "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"Penstock\",\"license\":{\"name\":\"Apache "
      "2.0\"},\"version\":";
  json::AppendString(out, version);
  out += "},\"paths\":{";
  bool first = true;
  std::string done;
  for (const Route& route : Routes()) {
    const std::string mark = "\n" + std::string(route.pattern) + "\n";
    if (!IsServed(route, tgi_profile) || done.find(mark) != done.npos) continue;
    done += mark;
    if (!first) out += ',';
    first = false;
    json::AppendString(out, PathOf(route));
    out += ":{";
    bool first_operation = true;
    for (const Route& other : Routes()) {
      if (other.pattern != route.pattern || !IsServed(other, tgi_profile)) continue;
      if (!first_operation) out += ',';
      first_operation = false;
      AppendOperation(out, other, tgi_profile);
    }
    out += '}';
  }
  out +=
      "},\"components\":{\"securitySchemes\":{\"ApiKey\":{\"type\":\"http\",\"scheme\":"
      "\"bearer\"}},\"schemas\":{";
  AppendGenerateSchemas(out);
  out += ',';
  AppendChatSchema(out);
  out += ',';
  AppendCompletionSchema(out);
  out += ',';
  openai::AppendRequestSchemas(out);
  out += ',';
  djl::AppendRequestSchemas(out);
  out += ',';
  effective::AppendRequestSchema(out);
  out += ',';
  AppendAnswerSchemas(out);
  out +=
      ",\"VertexRequest\":{\"type\":\"object\",\"required\":[\"instances\"],\"properties\":{"
      "\"instances\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"$ref\":\"#/components/schemas/"
      "GenerateRequest\"},"
      "{\"$ref\":\"#/components/schemas/ChatRequest\"}]}}}}";
  return out + "}}}";
}

void DocsRedirect(ApiContext&, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond({303, "", {{"location", "/docs/"}}, ""});
}

// A page without scripts from elsewhere: the routes, and where the document is.
void Docs(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  std::string page =
      "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Penstock</title>"
      "</head><body><h1>Routes</h1><p>OpenAPI document: <a href=\"/api-doc/openapi.json\">"
      "/api-doc/openapi.json</a></p><ul>";
  for (const Route& route : Routes()) {
    if (!IsServed(route, context.options.tgi_profile)) continue;
    page.append("<li><code>").append(route.method).append(" ").append(PathOf(route));
    page.append("</code></li>");
  }
  exchange->Respond({200, "text/html", {}, page + "</ul></body></html>"});
}

void OpenApiDocument(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond(
      {200, "application/json", {}, OpenApi(context.options.tgi_profile, context.options.version)});
}

}  // namespace penstock::router::tgi
