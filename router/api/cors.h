// Cross-origin headers, for pages in a browser. Answers carry them on every route, refusals too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "router/http/message.h"

namespace penstock::router {

// What a page of an allowed origin may send and read.
struct CorsRules {
  std::string_view methods = "GET,POST,DELETE";
  // Request headers in lower case. A name that ends in `*` stands for all that begin so.
  std::vector<std::string_view> request_headers = {"authorization", "x-api-key",   "content-type",
                                                   "x-request-id",  "anthropic-*", "openai-*",
                                                   "x-stainless-*", "x-penstock-*"};
  // Headers of answers that a page may read; empty: those that every browser lets it read.
  std::string_view exposed =
      "allow,retry-after,retry-after-ms,x-should-retry,www-authenticate,x-request-id,request-id,"
      "x-penstock-ignored,x-compute-type,x-compute-time,x-compute-characters,x-total-time,"
      "x-validation-time,x-queue-time,x-inference-time,x-time-per-token,x-prompt-tokens,"
      "x-generated-tokens";
};

// For an answer to `head`. Nothing without allowed origins; "*" among them allows all. The answer
// to OPTIONS names each allowed header, and of those with a `*` the ones that `head` asks for.
// `more_headers`: further request headers, in any case. Where there are some, pages may also send
// all that clients of OpenAI and Anthropic send, whatever the dialect's rules are.
std::vector<Header> CorsHeaders(const CorsRules& rules, const std::vector<std::string>& origins,
                                const std::vector<std::string>& more_headers,
                                const RequestHead& head);

}  // namespace penstock::router
