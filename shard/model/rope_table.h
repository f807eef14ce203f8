// Rotation angles of RoPE as tables, computed once on the host.
#pragma once

#include <cstdint>
#include <span>
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
// They are those of a text of `length` tokens; 0 = of a short text.
std::vector<float> RopeFrequencies(const RopeSpec& rope, std::uint32_t length = 0);

// Sets the angles of one position, dim / 2 numbers each.
void SetAngles(const RopeSpec& rope, std::span<const float> frequencies, std::uint32_t position,
               float* cos, float* sin);

// The table for short texts.
RopeTable BuildRopeTable(const RopeSpec& rope, std::uint32_t positions);

}  // namespace penstock::shard
