// The cost of a prediction of --rank-model: a model of the size that tools/rank makes by default.
#pragma once

#include <cstdint>

#include "common/percentiles.h"

namespace penstock::bench {

// Microseconds of a prediction for a prompt of `tokens` tokens: 200 trees of 31 leaves, 512 words.
Percentiles MeasureRanks(std::uint32_t tokens);

}  // namespace penstock::bench
