#include "router/metrics/busy_histogram.h"

#include <chrono>
#include <cmath>

namespace penstock::router {

BusyHistogram::BusyHistogram(prometheus::Histogram& shown, const std::vector<double>& bounds)
    : shown_(shown), counts_(bounds.size() + 1) {
  for (const double bound : bounds) {
    const Duration whole(std::llround(bound * Duration::period::den / Duration::period::num));
    bounds_.push_back(whole.count());
  }
}

void BusyHistogram::Show() {
  std::vector<double> counts;
  for (std::atomic<std::uint64_t>& count : counts_) {
    counts.push_back(static_cast<double>(count.exchange(0, std::memory_order_relaxed)));
  }
  const Duration sum(sum_.exchange(0, std::memory_order_relaxed));
  shown_.ObserveMultiple(counts, std::chrono::duration<double>(sum).count());
}

}  // namespace penstock::router
