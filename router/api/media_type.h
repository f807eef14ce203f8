// What `Content-Type` says of a body.
#pragma once

#include <string_view>

namespace penstock::router {

// Whether this names JSON: application/json or application/…+json, as in TGI. The parameters must
// be well-formed too, by the rules of the `mime` crate that TGI uses.
bool IsJson(std::string_view content_type);

}  // namespace penstock::router
