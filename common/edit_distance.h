#pragma once

#include <cstddef>
#include <string_view>

namespace penstock {

// The Levenshtein distance.
std::size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace penstock
