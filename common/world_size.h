// Whether a model can be divided among a number of tensor-parallel ranks. The launcher checks this
// before it starts a process, and a shard when it loads.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

namespace penstock {

// The sizes in config.json that are divided. The defaults fit any number of ranks.
struct CutSizes {
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 1;  // with fewer than ranks, several ranks hold each
  std::uint64_t intermediate = 0;
};

// OK if `world` divides the query heads and the FFN width, and divides the K/V heads or is a
// multiple of them. Otherwise Unimplemented with the numbers: the option and the model are each
// valid, but do not fit together.
absl::Status CheckWorldSize(std::uint64_t world, const CutSizes& sizes);

}  // namespace penstock
