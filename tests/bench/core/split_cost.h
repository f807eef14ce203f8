// Cost of splitting one decode batch (scheduler/step/batch_splitter.h).
#pragma once

#include <cstdint>

#include "common/percentiles.h"

namespace penstock::bench {

// Microseconds to split `rows` random lengths into up to `splits` sub-batches, if no partition
// meets the target.
Percentiles MeasureSplit(std::uint32_t rows, std::uint32_t splits);

}  // namespace penstock::bench
