// Turns progress notices into a few lines of text. Pure: times are arguments.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "common/notify.h"

namespace penstock::launcher {

class ProgressText {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // At most one line per child and interval, besides the first and the last of each stage.
  explicit ProgressText(std::chrono::nanoseconds interval) : interval_(interval) {}

  // "loading 120 MiB of 500 MiB (24 %), 310 MiB/s, 1 s left"; nothing if it is too early for
  // another line.
  std::optional<std::string> Line(const std::string& child, const ProgressNotice& notice, Time now);

 private:
  struct Stage {
    std::string name;
    Time began;
    std::uint64_t done_at_begin = 0;
    Time printed;
    bool over = false;  // its last line is printed
  };

  std::chrono::nanoseconds interval_;
  std::map<std::string, Stage> stages_;  // by child
};

}  // namespace penstock::launcher
