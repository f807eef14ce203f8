// Cross-origin headers, for pages in a browser. Answers carry them on every route, refusals too.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/http/application.h"

namespace penstock::router {

// For an answer to a request from `origin` (empty: none was named). Nothing without allowed
// origins; "*" among them allows all.
std::vector<Header> CorsHeaders(const std::vector<std::string>& allowed, std::string_view origin);

// The additional headers of an answer to OPTIONS.
std::vector<Header> PreflightHeaders();

// An exchange that adds headers to every answer.
std::shared_ptr<Exchange> WithHeaders(std::shared_ptr<Exchange> exchange,
                                      std::vector<Header> headers);

}  // namespace penstock::router
