// A histogram of durations in bounded memory: exact mean and maximum, percentiles within 1.6 %.
#pragma once

#include <array>
#include <cstdint>

#include "common/percentiles.h"
#include "common/time.h"

namespace penstock::router::effective {

class LatencyHistogram {
 public:
  void Add(Duration duration);

  std::uint64_t count() const { return count_; }
  double SumSeconds() const { return sum_seconds_; }
  Percentiles Seconds() const;  // zeroes when empty

 private:
  // Buckets of equal ratio: 32 between a power of two and the next, from a microsecond (what is
  // shorter is in the first) to 12 days.
  static constexpr std::size_t kParts = 32;
  static constexpr std::size_t kPowers = 40;
  static std::size_t BucketOf(std::uint64_t microseconds);
  static double SecondsOf(std::size_t bucket);
  double At(double share) const;

  std::array<std::uint32_t, kParts * kPowers> buckets_{};
  std::uint64_t count_ = 0;
  double sum_seconds_ = 0;
  double max_seconds_ = 0;
};

}  // namespace penstock::router::effective
