// Durations for log lines and errors.
#pragma once

#include <chrono>
#include <string>

namespace penstock::launcher {

// "1.250 s", "3 s".
inline std::string Seconds(std::chrono::nanoseconds duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  std::string text = std::to_string(ms / 1000);
  if (ms % 1000 != 0) text += "." + std::to_string(ms % 1000 + 1000).substr(1);
  return text + " s";
}

}  // namespace penstock::launcher
