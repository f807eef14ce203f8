#include "router/api/api.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/edit_distance.h"
#include "router/api/cors.h"
#include "router/api/errors.h"
#include "router/api/hints.h"
#include "router/api/media_type.h"
#include "router/api/refusal_span.h"
#include "router/api/run.h"
#include "router/api/signed_exchange.h"
#include "router/http/text.h"

namespace penstock::router {
namespace {

constexpr std::string_view kBase = "/v1";

bool Serves(const Route& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

// The methods of a path as Allow lists them; empty when the path is unknown.
std::string Allowed(const DialectSet& dialects, std::string_view path) {
  std::string allowed;
  for (const auto& [route, dialect] : dialects.served()) {
    if (!Matches(*route, path)) continue;
    if (!allowed.empty()) allowed += ',';
    allowed.append(route->method == "GET" ? "GET,HEAD" : route->method);
  }
  return allowed;
}

// TGI begins an event stream with status 200 before it reports an error. While the server drains,
// no handler gets that far: a proxy or client needs the status to go elsewhere.
bool RefuseWhileDraining(ApiContext& context, const Route& route, const Dialect& dialect,
                         Exchange& exchange) {
  if (!Generates(route)) return false;
  const HealthReport report = context.engine.CheckHealth();
  if (report.state != Health::kDraining) return false;
  context.metrics.requests().Arrived(route.pattern);
  RefuseRequest(context, exchange, dialect.Errors(), {ApiErrorKind::kDraining, report.detail, ""});
  return true;
}

// A path as an error may show it: cut, and only what a URL may hold.
std::string Shown(std::string_view path) {
  std::string shown;
  for (const char c : path.substr(0, 100)) shown += c > ' ' && c < 0x7f ? c : '?';
  if (path.size() > 100) shown += "...";
  return shown;
}

std::string WrongMethod(const RequestHead& head, std::string_view allowed) {
  std::string text = "the method of " + Shown(head.path) + " must be ";
  if (allowed.find(',') != allowed.npos) text += "one of ";
  return text.append(allowed) + ". Given: " + Shown(head.method);
}

// Whether `path` looks like a misspelt `pattern`.
bool IsNear(std::string_view path, std::string_view pattern) {
  constexpr std::size_t kMostEdits = 2;
  constexpr std::size_t kBytesPerEdit = 4;
  const std::size_t edits = EditDistance(path, pattern);
  return edits <= kMostEdits && edits * kBytesPerEdit < path.size();
}

// Whether `path` ends with `pattern`, with or without its `/v1`.
bool EndsWith(std::string_view path, std::string_view pattern) {
  if (pattern.starts_with(kBase)) pattern.remove_prefix(kBase.size());
  return pattern.size() > 1 && path.ends_with(pattern);
}

// A served path that the client may have meant: another base URL, a slash too many or a misspelt
// name. Empty if there is none.
std::string Meant(const DialectSet& dialects, std::string_view method, std::string_view path) {
  path = path.substr(0, 100);
  const std::string_view trimmed = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  std::vector<std::string> candidates = {std::string(trimmed)};
  candidates.push_back(std::string(kBase).append(trimmed));
  if (trimmed.starts_with(kBase)) candidates.emplace_back(trimmed.substr(kBase.size()));
  for (const std::string& candidate : candidates) {
    for (const auto& [route, dialect] : dialects.served()) {
      if (Serves(*route, method) && Matches(*route, candidate)) return candidate;
    }
  }
  for (const auto like : {EndsWith, IsNear}) {
    for (const auto& [route, dialect] : dialects.served()) {
      if (Serves(*route, method) && like(trimmed, route->pattern)) {
        return std::string(route->pattern);
      }
    }
  }
  return "";
}

std::string KeyError(const RequestHead& head, const Dialect& dialect) {
  const auto key = dialect.KeyIn(head);
  return (!key || key->empty() ? "an API key is missing: " : "the API key is wrong: ") +
         std::string(dialect.KeyAdvice()) +
         "; the operator set it with --api-key or --api-keys-file";
}

}  // namespace

std::optional<std::string> Api::TenantOf(const RequestHead& head, const Dialect& dialect) const {
  const auto keys = context_.options.keys == nullptr ? nullptr : context_.options.keys->Get();
  if (keys == nullptr || keys->empty()) return "";
  const auto key = dialect.KeyIn(head);
  const auto name = key ? keys->NameOf(*key) : std::nullopt;
  if (!name) return std::nullopt;
  return std::string(*name);
}

std::vector<Header> Api::Cors(const RequestHead& head) const {
  const ApiOptions& options = context_.options;
  return CorsHeaders(context_.dialects.fallback().Cors(), options.cors_origins,
                     options.cors_headers, head);
}

RouteMatch Api::Match(const RequestHead& head) const {
  RouteMatch match = MatchPlain(head);
  if (match.refusal && head.method == "POST" && context_.options.spans != nullptr) {
    TraceRefusal(*context_.options.spans, head, match.route, match.refusal->status,
                 match.refusal->body);
  }
  const std::vector<Header> cors = Cors(head);
  if (cors.empty()) return match;
  if (match.refusal) {
    auto& headers = match.refusal->headers;
    headers.insert(headers.end(), cors.begin(), cors.end());
  } else {
    match.handle = [handle = std::move(match.handle), cors](HttpRequest request,
                                                            std::shared_ptr<Exchange> exchange) {
      exchange->AddHeaders(cors);
      handle(std::move(request), std::move(exchange));
    };
  }
  return match;
}

RouteMatch Api::MatchPlain(const RequestHead& head) const {
  const DialectSet& dialects = context_.dialects;
  RouteMatch match;
  const Route* matched = nullptr;
  const Route* same_path = nullptr;
  const Dialect* dialect = &dialects.OwnerOf(head.path);  // of the matched route, or of the path
  for (const auto& [route, its_dialect] : dialects.served()) {
    if (!Matches(*route, head.path)) continue;
    // Methods of a path cannot be probed without the key, unless one is open: `/`, as in TGI.
    if (same_path == nullptr || route->access == Access::kPublic) {
      same_path = route;
      if (matched == nullptr) dialect = its_dialect;
    }
    if (matched == nullptr && Serves(*route, head.method)) {
      matched = route;
      dialect = its_dialect;
    }
  }
  const auto refuse = [&](ApiErrorKind kind, std::string message) {
    match.refusal =
        dialects.fallback().Reword(dialect->Errors().Response({kind, std::move(message), ""}));
    dialect->Sign(head, *match.refusal);
  };
  const auto allow = [&] {
    match.refusal->headers.push_back({"allow", Allowed(dialects, head.path)});
  };
  if (head.method == "OPTIONS") {
    match.refusal = HttpResponse{200, "", {}, ""};
    if (same_path != nullptr) allow();
    return match;
  }
  if (same_path == nullptr) {
    const std::string meant = Meant(dialects, head.method, head.path);
    refuse(ApiErrorKind::kNotFound,
           "no such route: " + Shown(head.method) + " " + Shown(head.path) +
               (meant.empty() ? "" : ". Did you mean " + Shown(meant) + "?"));
    return match;
  }
  match.route = same_path->pattern;
  const Access access = matched != nullptr ? matched->access : same_path->access;
  auto tenant = access == Access::kKey ? TenantOf(head, *dialect) : "";
  if (!tenant) {
    refuse(ApiErrorKind::kUnauthorized, KeyError(head, *dialect));
    if (matched == nullptr) allow();
    return match;
  }
  match.tenant = *std::move(tenant);
  if (matched == nullptr) {
    refuse(ApiErrorKind::kMethodNotAllowed, WrongMethod(head, Allowed(dialects, head.path)));
    allow();
    return match;
  }
  if (matched->method == "POST" && !IsJson(head.Find("content-type"))) {
    refuse(ApiErrorKind::kContentType, "Expected request with `Content-Type: application/json`");
    return match;
  }
  match.quiet = matched->quiet;
  if (Generates(*matched)) match.timeout = TimeoutIn(head);
  match.handle = [&context = context_, route = matched, dialect](
                     HttpRequest request, std::shared_ptr<Exchange> exchange) {
    exchange = Signed(std::move(exchange), *dialect, request.head);
    if (context.options.spans != nullptr && route->method == "POST") {
      exchange =
          WithRefusalSpan(std::move(exchange), context.options.spans, request.head, route->pattern);
    }
    if (RefuseWhileDraining(context, *route, *dialect, *exchange)) return;
    route->handler(context, std::move(request), std::move(exchange));
  };
  return match;
}

HttpResponse Api::Refuse(const RequestHead& head, const HttpFailure& failure) const {
  const DialectSet& dialects = context_.dialects;
  const Dialect& dialect = dialects.OwnerOf(head.path);
  HttpResponse response = dialect.Errors().Response(FromHttp(failure));
  response.status = failure.status;
  if (head.method == "POST" && context_.options.spans != nullptr) {
    TraceRefusal(*context_.options.spans, head, "unread", failure.status, failure.message);
  }
  response = dialects.fallback().Reword(std::move(response));
  dialect.Sign(head, response);
  for (Header& header : Cors(head)) response.headers.push_back(std::move(header));
  return response;
}

}  // namespace penstock::router
