// One route: what it serves, who may call it, and what the OpenAPI document says about it.
//
// A route needs the API key unless its row says otherwise: a row that says nothing is closed. The
// decision depends on the matched row, never on the spelling of a path.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "router/http/application.h"

namespace penstock::router {

struct ApiContext;

enum class Access : std::uint8_t {
  kKey,     // the API key, where one is configured
  kPublic,  // probes, metrics and facts about the model
};

using Handler = std::function<void(ApiContext&, HttpRequest, std::shared_ptr<Exchange>)>;

// What the OpenAPI document says of a route. Types are in the notation of docs/shapes.h.
struct RouteDoc {
  struct Content {
    std::string_view media;
    std::string_view type;
  };
  std::string_view body = {};            // the JSON that a POST takes
  std::array<Content, 3> contents = {};  // of the answer; none: it has no body
  std::string_view failure = {};         // of the event that ends a stream that fails
  std::string_view unavailable = {};     // the body of a 503 that the handler itself answers
  std::string_view redirect = {};        // where a 303 leads
  std::string_view path = {};            // with the names of its parts; empty: the pattern
};

struct Route {
  std::string_view method;  // GET (serves HEAD too), POST or DELETE
  // An exact path. "{id}" stands for a part of it without slashes, and at the end for all the rest.
  std::string_view pattern;
  Handler handler = nullptr;
  Access access = Access::kKey;
  bool quiet = false;  // successes write no line to the access log
  RouteDoc doc = {};
};

// Media types of answers.
inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kEvents = "text/event-stream";

inline Route Post(std::string_view pattern, Handler handler, RouteDoc doc) {
  return {.method = "POST", .pattern = pattern, .handler = std::move(handler), .doc = doc};
}
inline Route Get(std::string_view pattern, Handler handler, RouteDoc doc) {
  return {.method = "GET", .pattern = pattern, .handler = std::move(handler), .doc = doc};
}
inline Route Delete(std::string_view pattern, Handler handler, RouteDoc doc) {
  return {.method = "DELETE", .pattern = pattern, .handler = std::move(handler), .doc = doc};
}
inline Route Public(Route route) {
  route.access = Access::kPublic;
  return route;
}
// Public and quiet.
inline Route Probe(std::string_view pattern, Handler handler, RouteDoc doc) {
  return {"GET", pattern, std::move(handler), Access::kPublic, true, doc};
}

// Whether its requests need the shards. Such requests are refused while the server drains.
inline bool Generates(const Route& route) {
  return route.method == "POST" && !route.pattern.ends_with("tokenize") &&
         !route.pattern.ends_with("/cancel");
}

inline bool Matches(const Route& route, std::string_view path) {
  constexpr std::string_view kId = "{id}";
  const std::size_t at = route.pattern.find(kId);
  if (at == route.pattern.npos) return route.pattern == path;
  const std::string_view prefix = route.pattern.substr(0, at);
  const std::string_view suffix = route.pattern.substr(at + kId.size());
  if (path.size() <= prefix.size() + suffix.size()) return false;
  if (!path.starts_with(prefix) || !path.ends_with(suffix)) return false;
  path.remove_prefix(prefix.size());
  path.remove_suffix(suffix.size());
  return suffix.empty() || path.find('/') == path.npos;
}

}  // namespace penstock::router
