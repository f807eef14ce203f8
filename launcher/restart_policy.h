// How often and how soon a replica group or the router is started again. Pure: times are arguments.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>

namespace penstock::launcher {

struct RestartLimits {
  std::chrono::nanoseconds first_pause = std::chrono::seconds(1);  // doubles with each failure
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(30);
  // More failures than that within the window, and the group stays down.
  std::size_t restarts = 5;
  std::chrono::nanoseconds window = std::chrono::minutes(10);
  // Whether a server's only group and its router are started again, too, and not the server ended.
  bool single = false;
};

class RestartPolicy {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RestartPolicy(const RestartLimits& limits) : limits_(limits) {}

  // The pause before the next start after a failure; nothing once the limit is reached.
  std::optional<std::chrono::nanoseconds> OnFailure(Time now);

 private:
  RestartLimits limits_;
  std::deque<Time> failures_;  // within the window
};

}  // namespace penstock::launcher
