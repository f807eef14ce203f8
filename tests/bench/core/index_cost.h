// Cost of the prefix index per block operation. Look-up, lock, insertion, unlock and eviction of a
// block count as one operation each.
#pragma once

#include <cstdint>

#include "sim/trace/trace.h"

namespace penstock::bench {

struct IndexCost {
  std::uint64_t operations = 0;
  double nanoseconds_per_operation = 0;
  double hit_rate = 0;  // of the look-ups
};

// Replays the prompts of a trace, one after the other, in an index of `capacity` blocks.
IndexCost MeasureIndex(const sim::Trace& trace, std::uint32_t capacity, std::uint32_t block_size);

}  // namespace penstock::bench
