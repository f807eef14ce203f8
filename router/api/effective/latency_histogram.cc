#include "router/api/effective/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

namespace penstock::router::effective {

// Below 32 µs a bucket is one microsecond; above, the five bits after the leading one choose it.
std::size_t LatencyHistogram::BucketOf(std::uint64_t microseconds) {
  if (microseconds < kParts) return microseconds;
  const auto power = static_cast<std::size_t>(std::bit_width(microseconds)) - 5;  // >= 1
  const std::size_t part = (microseconds >> (power - 1)) - kParts;
  return std::min(power * kParts + part, kParts * kPowers - 1);
}

// Its middle.
double LatencyHistogram::SecondsOf(std::size_t bucket) {
  if (bucket < kParts) return 1e-6 * static_cast<double>(bucket);
  const std::size_t power = bucket / kParts;
  const auto low = static_cast<double>(bucket % kParts + kParts);
  return 1e-6 * (low + 0.5) * std::ldexp(1.0, static_cast<int>(power) - 1);
}

void LatencyHistogram::Add(Duration duration) {
  const Duration positive = std::max(duration, Duration{0});
  const double seconds = std::chrono::duration<double>(positive).count();
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(positive);
  ++buckets_[BucketOf(static_cast<std::uint64_t>(microseconds.count()))];
  ++count_;
  sum_seconds_ += seconds;
  max_seconds_ = std::max(max_seconds_, seconds);
}

// Nearest rank.
double LatencyHistogram::At(double share) const {
  const auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= rank && seen > 0) return std::min(SecondsOf(bucket), max_seconds_);
  }
  return 0;
}

Percentiles LatencyHistogram::Seconds() const {
  if (count_ == 0) return {};
  return {sum_seconds_ / static_cast<double>(count_), At(0.5), At(0.9), At(0.99), max_seconds_};
}

}  // namespace penstock::router::effective
