// Whether a model can be divided among a number of tensor-parallel ranks. The launcher checks this
// before it starts a process, and a shard when it loads.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock {

// A number of things that ranks divide among them. 0 fits any number of ranks.
struct CutSize {
  std::uint64_t size = 0;
  std::string_view what;      // "attention heads"
  bool replicated = false;    // with fewer of them than ranks, several ranks hold each
  std::uint64_t instead = 0;  // these are divided if those cannot be; 0: nothing is
};

// OK if `world` divides every size, or is a multiple of one that is replicated. Otherwise
// Unimplemented with the numbers and the world sizes that fit: the option and the model are each
// valid, but do not fit together. The first size is that of the query heads.
absl::Status CheckWorldSize(std::uint64_t world, const std::vector<CutSize>& sizes);

}  // namespace penstock
