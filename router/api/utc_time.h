// A time as RFC 3339 writes it: 2026-11-27T08:00:00Z.
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <string>

namespace penstock::router {

inline std::string UtcTime(std::int64_t seconds_since_1970) {
  const auto seconds = static_cast<std::time_t>(seconds_since_1970);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text.data(), size};
}

}  // namespace penstock::router
