// Body of POST /inference. `prompt` and `num_tokens` are the original's; the rest is optional.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "router/api/body.h"

namespace penstock::router::effective {

struct Request {
  std::string prompt;
  std::uint32_t num_tokens = 0;  // exactly this many are generated
  std::optional<std::uint64_t> seed;
  bool details = false;  // ids and times in the answer
  // When the client meant to send the request, in milliseconds since 1970. The answer then has a
  // latency that includes the delay of a late client.
  std::optional<std::uint64_t> intended_arrival_ms;
};

Parsed<Request> ParseRequest(std::string_view body);

// The body as a JSON schema, a member of an object of them.
void AppendRequestSchema(std::string& out);

}  // namespace penstock::router::effective
