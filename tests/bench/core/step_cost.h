// Cost of one step of the core: a result in, the next plan out.
#pragma once

#include <cstdint>

#include "common/percentiles.h"

namespace penstock::bench {

struct StepCostOptions {
  std::uint32_t running = 256;
  std::uint32_t queued = 4096;
  std::uint32_t steps = 4000;
  bool churn = false;  // in every step one request ends, one is admitted and one arrives
};

struct StepCost {
  Percentiles microseconds;
  double allocations_per_step = 0;
};

StepCost MeasureSteps(const StepCostOptions& options);

}  // namespace penstock::bench
