// A histogram of durations that is fed for each token, by several threads: two additions to atomic
// numbers. Prometheus' own takes a lock for each value; it gets what has gathered when it is read.
//
// Thread-safe.
#pragma once

#include <prometheus/histogram.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/time.h"

namespace penstock::router {

class BusyHistogram {
 public:
  // `bounds`: those of `shown`, in seconds, upwards; `shown` must outlive this.
  BusyHistogram(prometheus::Histogram& shown, const std::vector<double>& bounds);

  void Observe(Duration value) {
    std::size_t bucket = 0;
    while (bucket < bounds_.size() && bounds_[bucket] < value.count()) ++bucket;
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value.count(), std::memory_order_relaxed);
  }

  // Moves what has gathered into the one that is shown.
  void Show();

 private:
  prometheus::Histogram& shown_;
  std::vector<Duration::rep> bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;  // one more than bounds
  std::atomic<Duration::rep> sum_{0};
};

}  // namespace penstock::router
