// Cost of choosing the group of a request. An arrival is matched against every group's prefix
// index; then follow choice, admission and plan.
#pragma once

#include <cstdint>

#include "common/percentiles.h"
#include "sim/trace/trace.h"

namespace penstock::bench {

// Microseconds per arrival of the trace, on idle groups of `blocks` blocks each. A request is
// computed to its end (one output token) before the next arrives.
Percentiles MeasureRoutes(const sim::Trace& trace, std::uint32_t groups, std::uint32_t blocks);

}  // namespace penstock::bench
