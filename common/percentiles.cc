#include "common/percentiles.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace penstock {

Percentiles Summarise(std::vector<double> values) {
  if (values.empty()) return {};
  const auto size = static_cast<double>(values.size());
  const auto at = [&values, size](double share) {
    const double rank = std::max(std::ceil(share * size), 1.0);
    const auto it = values.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
    std::nth_element(values.begin(), it, values.end());
    return *it;
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / size, at(0.5), at(0.9), at(0.99), at(1)};
}

}  // namespace penstock
