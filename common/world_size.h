// Which numbers of tensor-parallel ranks a model can be cut among. The launcher asks before it
// starts anything, a shard when it loads.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

namespace penstock {

// What is cut, as config.json has it. One that is not known there stays as it is here and fits any
// number of ranks.
struct CutSizes {
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 1;  // fewer than ranks: each is held by several
  std::uint64_t intermediate = 0;
};

// `world` divides the query heads and the FFN width, and divides or is divided by the K/V heads.
// Else Unimplemented, since option and model are each right by themselves, with the numbers.
absl::Status CheckWorldSize(std::uint64_t world, const CutSizes& sizes);

}  // namespace penstock
