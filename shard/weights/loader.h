// Carries out a WeightPlan: reads the byte ranges that this rank needs into aligned memory, and
// converts them to the dtype in which the model computes.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "shard/tensor_view.h"
#include "shard/weights/memory_region.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

// Called on the loading thread at the start, after each few megabytes, and at the end, when done ==
// total. If it returns false, loading ends with Cancelled.
using LoadProgress = std::function<bool(std::string_view stage, std::uint64_t bytes_done,
                                        std::uint64_t bytes_total)>;

// Owns the weights of one rank in host memory. views[i] belongs to plan.targets[i].
struct LoadedWeights {
  MemoryRegion memory;
  std::vector<TensorView> views;
};

// The plan must have passed CheckParts. Errors name the file.
absl::StatusOr<LoadedWeights> LoadWeights(const Checkpoint& checkpoint, const WeightPlan& plan,
                                          DType dtype, const LoadProgress& progress);

}  // namespace penstock::shard
