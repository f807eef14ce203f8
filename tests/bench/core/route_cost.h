// What it costs to decide where a request goes: one arrival in; match against every group's prefix
// index, choice, admission and plan out.
#pragma once

#include <cstdint>

#include "common/percentiles.h"
#include "sim/trace/trace.h"

namespace penstock::bench {

// Microseconds per arrival of the trace, on idle groups of `blocks` blocks each. A request is
// computed to its end (one output token) before the next arrives.
Percentiles MeasureRoutes(const sim::Trace& trace, std::uint32_t groups, std::uint32_t blocks);

}  // namespace penstock::bench
