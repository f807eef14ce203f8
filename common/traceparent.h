// The header of W3C trace context (https://www.w3.org/TR/trace-context/, level 1) that names a
// trace and one of its spans, as HTTP and gRPC metadata carry it.
#pragma once

#include <cstddef>
#include <string_view>

namespace penstock {

// version "-" trace id "-" span id "-" flags, in lower-case hexadecimal digits
inline constexpr std::size_t kTraceparentLength = 55;

// The four fields of level 1, without those that later versions append. Empty if `value` is
// malformed; the header is then ignored.
std::string_view TraceparentFields(std::string_view value);

}  // namespace penstock
