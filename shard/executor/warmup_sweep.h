// Which steps a warm-up times, so that the cost model (scheduler/cost/cost_terms.h) can be fitted:
// prompts alone, decode batches by context, chunks after a cached prefix, prompts beside decodes.
// Sizes are powers of two within the limits of the group; there are at most 32 steps. The simulated
// shard answers for the same steps.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/group.h"
#include "penstock/v1/shard.pb.h"

namespace penstock::shard {

struct SweepLimits {
  std::uint32_t step_tokens = 0;           // >= 1
  std::uint32_t sequences = 0;             // >= 1
  std::uint32_t sequence_length = 0;       // >= 1
  std::uint64_t pool_tokens = UINT64_MAX;  // most tokens in the cache
};

// Cheap steps before expensive ones, because a sweep may be cut short. Times are 0. Without decode
// rows the context of a prompt is what the cache holds before the chunk. Beside decode rows the
// prompt begins its sequence, and the context is that of the decodes.
std::vector<StepTimeSample> WarmupSweep(const SweepLimits& limits);

// Adds the sample to the answer of a warm-up.
void AddStepTime(const StepTimeSample& sample, v1::WarmupResponse& response);

// Roughly how much a step computes, to put steps in order.
std::uint64_t WarmupWork(const StepTimeSample& step);

}  // namespace penstock::shard
