#include "router/api/api.h"

#include <string>
#include <utility>

#include "router/api/cors.h"
#include "router/api/errors.h"
#include "router/api/media_type.h"
#include "router/api/native/handlers.h"
#include "router/api/refusal_span.h"
#include "router/api/routes.h"
#include "router/http/text.h"

namespace penstock::router {
namespace {

Dialect DialectOf(std::string_view path, const ApiOptions& options) {
  if (options.tgi_profile) return Dialect::kTgi;
  if (path.starts_with("/v1/") || path == "/v1") return Dialect::kOpenAi;
  return options.djl.is_default ? Dialect::kDjl : Dialect::kTgi;
}

// In whose words a route refuses what its handler never sees.
Dialect DialectOf(const Route& route, const ApiOptions& options) {
  if (route.dialect == Dialect::kNative) return native::ErrorDialect(options);
  const bool shared = route.pattern == "/invocations";
  return shared && options.djl.is_default ? Dialect::kDjl : route.dialect;
}

bool Serves(const Route& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

// The methods of a path as Allow lists them; empty when the path is unknown.
std::string Allowed(std::string_view path, bool tgi_profile) {
  std::string allowed;
  for (const Route& route : Routes()) {
    if (!IsServed(route, tgi_profile) || !Matches(route, path)) continue;
    if (!allowed.empty()) allowed += ',';
    allowed.append(route.method == "GET" ? "GET,HEAD" : route.method);
  }
  return allowed;
}

// An event stream begins with status 200 in TGI's words. While the server drains, no handler gets
// that far: a proxy or client needs the status to go elsewhere.
bool RefuseWhileDraining(ApiContext& context, const Route& route, Exchange& exchange) {
  if (!Generates(route)) return false;
  const HealthReport report = context.engine.CheckHealth();
  if (report.state != Health::kDraining) return false;
  context.metrics.RequestArrived(route.pattern);
  context.metrics.RequestFailed(RowOf(ApiErrorKind::kUnavailable).name);
  exchange.Respond(ErrorResponse(DialectOf(route, context.options),
                                 {ApiErrorKind::kUnavailable, report.detail, ""}));
  return true;
}

// A path as an error may show it: cut, and only what a URL may hold.
std::string Shown(std::string_view path) {
  std::string shown;
  for (const char c : path.substr(0, 100)) shown += c > ' ' && c < 0x7f ? c : '?';
  if (path.size() > 100) shown += "...";
  return shown;
}

}  // namespace

std::optional<std::string> Api::TenantOf(const RequestHead& head) const {
  const auto keys = context_.options.keys == nullptr ? nullptr : context_.options.keys->Get();
  if (keys == nullptr || keys->empty()) return "";
  const std::string_view value = head.Find("authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (value.size() < kScheme.size() ||
      !EqualsIgnoreCase(value.substr(0, kScheme.size()), kScheme)) {
    return std::nullopt;
  }
  const auto name = keys->NameOf(Trim(value.substr(kScheme.size())));
  if (!name) return std::nullopt;
  return std::string(*name);
}

// TGI's framework says nothing where ours would say why, and one thing where ours says more.
HttpResponse InTgisWords(HttpResponse response) {
  if (response.status == 401 || response.status == 404 || response.status == 405) {
    response.content_type.clear();
    response.body.clear();
  } else if (response.status == 413) {
    response.body = "Failed to buffer the request body: length limit exceeded";
  }
  return response;
}

Admission Api::Admit(const RequestHead& head) const {
  Admission admission = AdmitPlain(head);
  if (admission.refusal && head.method == "POST" && context_.options.spans != nullptr) {
    TraceRefusal(*context_.options.spans, head, admission.route, admission.refusal->status,
                 admission.refusal->body);
  }
  const std::vector<Header> cors = CorsHeaders(context_.options.cors_origins, head.Find("origin"));
  if (cors.empty()) return admission;
  if (admission.refusal) {
    auto& headers = admission.refusal->headers;
    headers.insert(headers.end(), cors.begin(), cors.end());
    if (head.method == "OPTIONS") {
      for (Header& header : PreflightHeaders()) headers.push_back(std::move(header));
    }
  } else {
    admission.handle = [handle = std::move(admission.handle), cors](
                           HttpRequest request, std::shared_ptr<Exchange> exchange) {
      handle(std::move(request), WithHeaders(std::move(exchange), cors));
    };
  }
  return admission;
}

Admission Api::AdmitPlain(const RequestHead& head) const {
  const bool tgi_profile = context_.options.tgi_profile;
  Admission admission;
  const Route* matched = nullptr;
  const Route* same_path = nullptr;
  for (const Route& route : Routes()) {
    if (!IsServed(route, tgi_profile) || !Matches(route, head.path)) continue;
    // Methods of a path cannot be probed without the key, unless one is open: `/`, as in TGI.
    if (same_path == nullptr || route.access == Access::kPublic) same_path = &route;
    if (Serves(route, head.method)) matched = &route;
  }
  const Dialect dialect = same_path != nullptr ? DialectOf(*same_path, context_.options)
                                               : DialectOf(head.path, context_.options);
  const auto refuse = [&](ApiErrorKind kind, std::string message) {
    admission.refusal = ErrorResponse(dialect, {kind, std::move(message), ""});
    if (tgi_profile) admission.refusal = InTgisWords(*std::move(admission.refusal));
  };
  if (head.method == "OPTIONS") {
    admission.refusal = HttpResponse{200, "", {}, ""};
    const std::string allowed = Allowed(head.path, tgi_profile);
    if (!allowed.empty()) admission.refusal->headers.push_back({"allow", allowed});
    return admission;
  }
  if (same_path == nullptr) {
    refuse(ApiErrorKind::kNotFound,
           "no such route: " + Shown(head.method) + " " + Shown(head.path));
    return admission;
  }
  admission.route = same_path->pattern;
  const Access access = matched != nullptr ? matched->access : same_path->access;
  auto tenant = access == Access::kKey ? TenantOf(head) : "";
  if (!tenant) {
    refuse(ApiErrorKind::kUnauthorized, "`Authorization` must be `Bearer` and the API key");
    if (matched == nullptr) {
      admission.refusal->headers.push_back({"allow", Allowed(head.path, tgi_profile)});
    }
    return admission;
  }
  admission.tenant = *std::move(tenant);
  if (matched == nullptr) {
    const std::string allowed = Allowed(head.path, tgi_profile);
    refuse(ApiErrorKind::kMethodNotAllowed, "the method of " + Shown(head.path) +
                                                " must be one of " + allowed +
                                                ". Given: " + Shown(head.method));
    admission.refusal->headers.push_back({"allow", allowed});
    return admission;
  }
  if (matched->method == "POST" && !IsJson(head.Find("content-type"))) {
    refuse(ApiErrorKind::kContentType, "Expected request with `Content-Type: application/json`");
    return admission;
  }
  admission.quiet = matched->quiet;
  admission.handle = [&context = context_, route = matched](HttpRequest request,
                                                            std::shared_ptr<Exchange> exchange) {
    if (context.options.spans != nullptr && route->method == "POST") {
      exchange =
          WithRefusalSpan(std::move(exchange), context.options.spans, request.head, route->pattern);
    }
    if (RefuseWhileDraining(context, *route, *exchange)) return;
    route->handler(context, std::move(request), std::move(exchange));
  };
  return admission;
}

HttpResponse Api::Refuse(const RequestHead& head, const HttpFailure& failure) const {
  const bool tgi_profile = context_.options.tgi_profile;
  HttpResponse response = ErrorResponse(DialectOf(head.path, context_.options), FromHttp(failure));
  response.status = failure.status;
  if (head.method == "POST" && context_.options.spans != nullptr) {
    TraceRefusal(*context_.options.spans, head, "unread", failure.status, failure.message);
  }
  if (tgi_profile) response = InTgisWords(std::move(response));
  for (Header& header : CorsHeaders(context_.options.cors_origins, head.Find("origin"))) {
    response.headers.push_back(std::move(header));
  }
  return response;
}

}  // namespace penstock::router
