// Integer time. The core reads no clock: each input has its time.
#pragma once

#include <chrono>

namespace penstock {

using Duration = std::chrono::nanoseconds;

// Monotonic nanoseconds since an arbitrary start (steady clock in production, virtual in the
// simulator). A tag clock: it has no now().
struct EngineClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<EngineClock, Duration>;
  static constexpr bool is_steady = true;
};
using Time = EngineClock::time_point;

inline double Milliseconds(Duration duration) {
  return static_cast<double>(duration.count()) * 1e-6;
}

// The steady clock of this process as engine time. Not for the core.
inline Time SteadyNow() {
  return Time(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

// The inverse, to wait until a time.
inline std::chrono::steady_clock::time_point OnSteadyClock(Time at) {
  return std::chrono::steady_clock::time_point(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(at.time_since_epoch()));
}

}  // namespace penstock
