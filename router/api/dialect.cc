#include "router/api/dialect.h"

#include <algorithm>

#include "router/http/text.h"

namespace penstock::router {

HttpResponse ErrorFormat::Response(const ApiError& error) const {
  HttpResponse response{Status(error.kind),
                        std::string(ContentType(error.kind)),
                        {},
                        Body(error),
                        RequestFailure{NameOf(error.kind), error.message}};
  if (const int seconds = std::max(error.retry_after, RetryAfter(error.kind)); seconds > 0) {
    response.headers.push_back({"retry-after", std::to_string(seconds)});
    response.headers.push_back({"retry-after-ms", std::to_string(seconds * 1000)});
    response.headers.push_back({"x-should-retry", "true"});
  }
  if (error.kind == ApiErrorKind::kUnauthorized) {
    response.headers.push_back({"www-authenticate", "Bearer"});
  }
  return response;
}

HttpResponse JsonResponse(std::string body) {
  return {200, "application/json", {}, std::move(body)};
}

ApiError ErrorFormat::TooManyRequests(std::uint32_t most) const {
  return {ApiErrorKind::kOverloaded,
          "too many concurrent requests; at most " + std::to_string(most) + " are taken", ""};
}

std::optional<std::string_view> Dialect::KeyIn(const RequestHead& head) const {
  const std::string_view value = head.Find("authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (!EqualsIgnoreCase(value.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  return Trim(value.substr(kScheme.size()));
}

std::string_view Dialect::KeyAdvice() const {
  return "send it in the header `Authorization: Bearer KEY` (curl: -H 'Authorization: Bearer KEY')";
}

}  // namespace penstock::router
