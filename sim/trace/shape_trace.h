// Makes traces from distributions and changes them. The same seed gives the same trace.
#pragma once

#include <cstdint>

#include "sim/trace/trace.h"

namespace penstock::sim {

struct LengthRange {
  std::uint32_t low = 1;
  std::uint32_t high = 1;  // inclusive, >= low
};

// Draws prompt and output lengths uniformly and independently. All requests arrive at 0.
Trace UniformTrace(std::uint32_t requests, LengthRange prompt, LengthRange output,
                   std::uint64_t seed);

// Gives the requests Poisson arrivals of rate `per_second` > 0, in the order of the rows.
void ArriveAtRate(Trace& trace, double per_second, std::uint64_t seed);

// Draws `requests` rows with replacement.
Trace Resample(const Trace& trace, std::uint32_t requests, std::uint64_t seed);

// Multiplies all arrival times by `factor` >= 0.
void ScaleTime(Trace& trace, double factor);

// Spreads requests of equal time evenly until the next time, but over at most `window`. For
// Mooncake's traces, whose times have steps of about 3 s.
void SpreadStamps(Trace& trace, Duration window);

// Makes all blocks full, of `block_tokens` tokens, and adds one token of its own to each prompt. So
// a prompt of n ids has n look-ups that may all hit, since the last token never comes from the
// cache.
void CountWholeBlocks(Trace& trace, std::uint32_t block_tokens);

}  // namespace penstock::sim
