// The time in which the requests that wait now will have been admitted, at the recent pace: how
// long a new request would wait, and when a refused client should try again. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "common/time.h"

namespace penstock::router {

class RetryAdvice {
 public:
  static constexpr double kMaxSeconds = 60;

  // A request ended that was computed for this time. If two threads count at once, one may be lost.
  void Computed(Duration inference) {
    const double seconds = std::chrono::duration<double>(inference).count();
    const double mean = mean_.load(std::memory_order_relaxed);
    mean_.store(mean == 0 ? seconds : mean + (seconds - mean) / kWeight, std::memory_order_relaxed);
  }

  // From 1 to 60. `running` requests are computed at once, so that many are admitted in the mean
  // time of one.
  int Seconds(std::uint64_t waiting, std::uint64_t running) const {
    const double seconds = std::ceil(Wait(
        static_cast<double>(waiting), static_cast<double>(std::max<std::uint64_t>(1, running))));
    return static_cast<int>(std::clamp(seconds, 1.0, kMaxSeconds));
  }

  // The predicted wait in seconds of a request if that many wait for `places` places. 0 before the
  // first request has ended.
  double Wait(double waiting, double places) const {
    return waiting / std::max(1.0, places) * mean_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr double kWeight = 16;  // requests whose times the mean remembers

  std::atomic<double> mean_{0};  // seconds; 0: no request has ended
};

}  // namespace penstock::router
