// Nearest-rank percentiles, as every report of Penstock prints them.
#pragma once

#include <vector>

namespace penstock {

struct Percentiles {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;  // in the unit of the values
};

// Zeroes when there are no values. O(n).
Percentiles Summarise(std::vector<double> values);

}  // namespace penstock
