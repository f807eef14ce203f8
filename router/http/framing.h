// Strict checks of the framing of a request head, on its raw bytes.
//
// Beast's parser accepts heads that two servers can read in two ways (a Transfer-Encoding that is
// not exactly "chunked", one on HTTP/1.0, repeated or listed Content-Length, folded lines, no or
// two Hosts, absolute-form targets of another host). An attacker can use each of them to smuggle a
// request through a proxy, so they are refused here (RFC 9112 sections 3.2, 5.2, 6.1, 6.3).
#pragma once

#include <optional>
#include <string_view>

#include "router/http/message.h"
#include "router/http/options.h"

namespace penstock::router {

// `head` is the request line and the headers with the empty line that ends them. nullopt: the head
// is unambiguous and within the limits. The parser still checks tokens and the version.
std::optional<HttpFailure> CheckFraming(std::string_view head, const HttpLimits& limits);

// The path and query of a request target in origin-form or absolute-form; empty where it is
// neither.
std::string_view PathOf(std::string_view target);

// The same limits on a head that has not ended yet, so that an endless one is refused early.
std::optional<HttpFailure> CheckUnfinished(std::string_view head, const HttpLimits& limits);

}  // namespace penstock::router
