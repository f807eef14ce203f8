// Changes a trace before it is replayed, and makes one from distributions. Same seed, same trace.
#pragma once

#include <cstdint>

#include "sim/trace/trace.h"

namespace penstock::sim {

struct LengthRange {
  std::uint32_t low = 1;
  std::uint32_t high = 1;  // inclusive, >= low
};

// Prompt and output lengths drawn evenly and independently; all arrive at 0.
Trace UniformTrace(std::uint32_t requests, LengthRange prompt, LengthRange output,
                   std::uint64_t seed);

// Poisson arrivals at `per_second` > 0, in the order of the rows.
void ArriveAtRate(Trace& trace, double per_second, std::uint64_t seed);

// `requests` rows drawn with replacement: the papers' way to make a load of any length.
Trace Resample(const Trace& trace, std::uint32_t requests, std::uint64_t seed);

// All arrivals times `factor` >= 0 (0: everything at once).
void ScaleTime(Trace& trace, double factor);

// Mooncake's traces are stamped about every 3 s, which replayed as is measures the queueing of its
// own artefact. Spreads every run of equal stamps evenly until the next stamp, `window` at most.
void SpreadStamps(Trace& trace, Duration window);

// Takes every block for a full one and adds one token that nobody shares, so that a prompt of n
// ids gives n look-ups that may all hit (a prompt is never taken from the cache to its end).
// `block_tokens` replaces the trace's own: hits are counted in blocks, whatever their size.
void CountWholeBlocks(Trace& trace, std::uint32_t block_tokens);

}  // namespace penstock::sim
