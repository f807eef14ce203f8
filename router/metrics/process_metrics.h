// The router's process under the names that Prometheus gives them in every program. They are read
// when the page is made. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "router/metrics/families.h"

namespace penstock::router {

// Memory of this process, in bytes.
std::uint64_t ResidentBytes();

class ProcessMetrics {
 public:
  explicit ProcessMetrics(Registry& registry);

  void AppendTo(std::vector<prometheus::MetricFamily>& page) const;

 private:
  double started_;  // seconds since 1970
};

}  // namespace penstock::router
