// Sizes as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

// "1.2 GiB".
std::string HumanBytes(std::uint64_t bytes);

}  // namespace penstock
