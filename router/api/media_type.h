// What `Content-Type` says of a body.
#pragma once

#include <string_view>

namespace penstock::router {

// Whether this names JSON: application/json or application/…+json, as in TGI, whose rules (those of
// the `mime` crate) also judge the parameters: a value that is no media type is not JSON either.
bool IsJson(std::string_view content_type);

}  // namespace penstock::router
