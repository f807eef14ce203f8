// Rotation angles of RoPE as tables, computed once on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/model/model_spec.h"

namespace penstock::shard {

// Row-major [positions, dim / 2]: cosine and sine of position * frequency, multiplied by the
// type's attention factor. Element j serves the pair (j, j + dim / 2) of a head ("half-split"
// order).
struct RopeTable {
  std::vector<float> cos;
  std::vector<float> sin;
};

// Frequencies in float32, rounded where transformers rounds, so that long positions agree with it.
std::vector<float> RopeFrequencies(const RopeSpec& rope);

RopeTable BuildRopeTable(const RopeSpec& rope, std::uint32_t positions);

}  // namespace penstock::shard
