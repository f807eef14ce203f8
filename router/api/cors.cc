#include "router/api/cors.h"

#include <algorithm>

#include "router/http/text.h"

namespace penstock::router {
namespace {

bool AllowsByPrefix(const std::vector<std::string_view>& patterns, std::string_view name) {
  return std::ranges::any_of(patterns, [name](std::string_view pattern) {
    return pattern.ends_with('*') && name.starts_with(pattern.substr(0, pattern.size() - 1));
  });
}

std::string AllowedHeaders(const CorsRules& rules, const std::vector<std::string>& more,
                           std::string_view asked) {
  std::vector<std::string> lower;
  for (const std::string& name : more) lower.push_back(ToLower(name));
  std::vector<std::string_view> patterns =
      more.empty() ? rules.request_headers : CorsRules().request_headers;
  patterns.insert(patterns.end(), lower.begin(), lower.end());
  std::string allowed;
  const auto add = [&allowed](std::string_view name) {
    if (!allowed.empty()) allowed += ',';
    allowed.append(name);
  };
  for (const std::string_view pattern : patterns) {
    if (!pattern.ends_with('*')) add(pattern);
  }
  while (!asked.empty()) {
    const std::size_t comma = std::min(asked.find(','), asked.size());
    const std::string name = ToLower(Trim(asked.substr(0, comma)));
    if (!name.empty() && AllowsByPrefix(patterns, name)) add(name);
    asked.remove_prefix(std::min(comma + 1, asked.size()));
  }
  return allowed;
}

}  // namespace

std::vector<Header> CorsHeaders(const CorsRules& rules, const std::vector<std::string>& origins,
                                const std::vector<std::string>& more_headers,
                                const RequestHead& head) {
  if (origins.empty()) return {};
  std::vector<Header> headers = {
      {"vary", "origin, access-control-request-method, access-control-request-headers"}};
  const std::string_view origin = head.Find("origin");
  const auto allows = [&origins](std::string_view name) {
    return std::ranges::find(origins, name) != origins.end();
  };
  if (allows("*")) {
    headers.push_back({"access-control-allow-origin", "*"});
  } else if (!origin.empty() && allows(origin)) {
    headers.push_back({"access-control-allow-origin", std::string(origin)});
  }
  if (head.method == "OPTIONS") {
    headers.push_back({"access-control-allow-methods", std::string(rules.methods)});
    headers.push_back(
        {"access-control-allow-headers",
         AllowedHeaders(rules, more_headers, head.Find("access-control-request-headers"))});
  } else if (!rules.exposed.empty()) {
    headers.push_back({"access-control-expose-headers", std::string(rules.exposed)});
  }
  return headers;
}

}  // namespace penstock::router
