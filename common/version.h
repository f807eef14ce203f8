#pragma once

#include <string_view>

namespace penstock {

// The release, "0.1.0". Reported by --version, GET /info and Describe.
std::string_view Version();

}  // namespace penstock
