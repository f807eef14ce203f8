#pragma once

#include <cstddef>

namespace penstock {

inline constexpr std::size_t kCacheLineBytes = 64;
inline constexpr std::size_t kPageBytes = 4096;

// The smallest multiple of `multiple` that holds `value`: RoundUp(65, 64) is 128.
constexpr std::size_t RoundUp(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace penstock
