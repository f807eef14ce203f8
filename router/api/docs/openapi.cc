#include "router/api/docs/openapi.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "router/api/docs/shapes.h"
#include "router/json/writer.h"

namespace penstock::router::docs {
namespace {

using enum ApiErrorKind;
using Served = DialectSet::Served;

constexpr std::string_view kText = "text/plain";

std::string_view PathOf(const Route& route) {
  return route.doc.path.empty() ? route.pattern : route.doc.path;
}

std::string_view DescribeStatus(int status) {
  constexpr std::pair<int, std::string_view> kTexts[] = {
      {400, "The request cannot be read, or is wrong"},
      {401, "The API key is missing or wrong"},
      {404, "There is none of that name"},
      {413, "The body is too long"},
      {415, "The body is not declared as JSON"},
      {422, "The request is wrong"},
      {424, "Generating failed"},
      {429, "Too many requests"},
      {503, "Nothing is taken now"},
      {504, "The request's time is over"},
  };
  const auto* found = std::ranges::find(kTexts, status, &std::pair<int, std::string_view>::first);
  return found == std::end(kTexts) ? "The server failed" : found->second;
}

std::vector<ApiErrorKind> KindsOf(const Route& route) {
  std::vector<ApiErrorKind> kinds;
  if (route.access == Access::kKey) kinds.push_back(kUnauthorized);
  if (route.pattern.find("{id}") != route.pattern.npos) kinds.push_back(kNotFound);
  if (route.method != "POST") return kinds;
  for (const ApiErrorKind kind : {kMalformedJson, kWrongType, kContentType, kValidation, kTooLarge,
                                  kOverloaded, kUnavailable, kInternal}) {
    kinds.push_back(kind);
  }
  if (!Generates(route)) return kinds;
  kinds.push_back(kGeneration);
  kinds.push_back(kDeadline);
  return kinds;
}

// By status, then by media type: the schemas.
using Errors = std::map<int, std::map<std::string_view, std::set<std::string_view>>>;

Errors ErrorsOf(const DialectSet& dialects, const Served& served) {
  Errors errors;
  const Route& route = *served.route;
  for (const ErrorFormat* format : served.dialect->DocumentedErrors()) {
    for (const ApiErrorKind kind : KindsOf(route)) {
      auto& contents = errors[format->Status(kind)];
      const HttpResponse refusal = dialects.fallback().Reword(format->Response({kind, "", ""}));
      if (kind == kUnauthorized && refusal.body.empty()) continue;
      const bool plain = format->ContentType(kind).starts_with(kText);
      contents[plain ? kText : kJson].insert(plain ? "string" : format->Schema());
    }
  }
  if (!route.doc.unavailable.empty()) errors[503][kJson].insert(route.doc.unavailable);
  return errors;
}

void AppendContent(std::string& out, std::string_view media, std::string_view type) {
  const auto schema = [type](std::string& text) { AppendType(text, type); };
  json::AppendMembers(out, media, json::Object("schema", schema));
}

std::string Either(const std::set<std::string_view>& types) {
  std::string either;
  for (const std::string_view type : types) {
    if (!either.empty()) either += ',';
    either += type;
  }
  return either;
}

void AppendSuccess(std::string& out, const RouteDoc& doc) {
  if (!doc.redirect.empty()) {
    json::AppendString(out += "\"303\":{\"description\":", "To " + std::string(doc.redirect));
    out += '}';
    return;
  }
  std::string description = "The answer";
  if (!doc.failure.empty()) {
    description.append(". A stream that fails ends with an event of ").append(doc.failure);
  }
  json::AppendString(out += "\"200\":{\"description\":", description);
  if (!doc.contents.front().media.empty()) {
    out += ",\"content\":{";
    for (const auto& [media, type] : doc.contents) {
      if (!media.empty()) AppendContent(out, media, type);
    }
    out += '}';
  }
  out += '}';
}

// Each status with the schema of each media type. A stream's schema is that of one event.
void AppendResponses(std::string& out, const DialectSet& dialects, const Served& served) {
  out += "\"responses\":{";
  AppendSuccess(out, served.route->doc);
  for (const auto& [status, contents] : ErrorsOf(dialects, served)) {
    out.append(",\"").append(std::to_string(status)).append("\":{\"description\":");
    json::AppendString(out, DescribeStatus(status));
    if (!contents.empty()) {
      out += ",\"content\":{";
      for (const auto& [media, types] : contents) AppendContent(out, media, Either(types));
      out += '}';
    }
    out += '}';
  }
  out += '}';
}

void AppendOperation(std::string& out, const DialectSet& dialects, const Served& served) {
  const Route& route = *served.route;
  out += '"';
  for (const char c : route.method) out += static_cast<char>(c - 'A' + 'a');
  out += "\":{";
  const std::string_view path = PathOf(route);
  if (const std::size_t open = path.find('{'); open != path.npos) {
    out += "\"parameters\":[";
    json::AppendObject(out, "name", path.substr(open + 1, path.find('}') - open - 1), "in", "path",
                       "required", true, "schema", json::Object("type", "string"));
    out += "],";
  }
  if (!route.doc.body.empty()) {
    out += "\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":";
    AppendType(out, route.doc.body);
    out += "}}},";
  }
  if (route.access == Access::kKey) out += "\"security\":[{\"ApiKey\":[]}],";
  AppendResponses(out, dialects, served);
  out += '}';
}

void AppendPaths(std::string& out, const DialectSet& dialects) {
  std::set<std::string_view> done;
  for (const Served& first : dialects.served()) {
    const std::string_view pattern = first.route->pattern;
    if (!done.insert(pattern).second) continue;
    json::AppendComma(out);
    json::AppendString(out, PathOf(*first.route));
    out += ":{";
    for (const Served& served : dialects.served()) {
      if (served.route->pattern != pattern) continue;
      json::AppendComma(out);
      AppendOperation(out, dialects, served);
    }
    out += '}';
  }
}

}  // namespace

std::string OpenApi(const DialectSet& dialects, const std::string& version) {
  std::string out =
      "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"Penstock\",\"license\":{\"name\":\"Apache "
      "2.0\"},\"version\":";
  json::AppendString(out, version);
  out += "},\"paths\":{";
  AppendPaths(out, dialects);
  out +=
      "},\"components\":{\"securitySchemes\":{\"ApiKey\":{\"type\":\"http\",\"scheme\":"
      "\"bearer\"}},\"schemas\":{";
  for (const auto& dialect : dialects.dialects()) dialect->AppendSchemas(out);
  return out + "}}}";
}

void Redirect(ApiContext&, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond({303, "", {{"location", "/docs/"}}, ""});
}

// A page without scripts: the routes, and where the document is.
void Page(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  std::string page =
      "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Penstock</title>"
      "</head><body><h1>Routes</h1><p>OpenAPI document: <a href=\"/api-doc/openapi.json\">"
      "/api-doc/openapi.json</a></p><ul>";
  for (const auto& [route, dialect] : context.dialects.served()) {
    page.append("<li><code>").append(route->method).append(" ").append(PathOf(*route));
    page.append("</code></li>");
  }
  exchange->Respond({200, "text/html", {}, page + "</ul></body></html>"});
}

void Document(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond(JsonResponse(OpenApi(context.dialects, context.options.version)));
}

}  // namespace penstock::router::docs
