// Which steps a warm-up times, so that the cost model (scheduler/cost/cost_terms.h) can be fitted:
// prompts alone, decode batches by context, chunks behind a cached prefix, prompts beside decodes;
// powers of two up to what the group's limits allow, at most 32 of them. Torch-free: the simulated
// shard answers for the same steps.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/group.h"

namespace penstock::shard {

struct SweepLimits {
  std::uint32_t step_tokens = 0;           // >= 1
  std::uint32_t sequences = 0;             // >= 1
  std::uint32_t sequence_length = 0;       // >= 1
  std::uint64_t pool_tokens = UINT64_MAX;  // bounds what a batch holds
};

// The extremes first, then cheap ones before expensive ones: a sweep may be cut short. Times are 0.
// The context of a prompt's sample (no decode rows) is what the cache holds before the chunk;
// beside decode rows the prompt begins its sequence.
std::vector<StepTimeSample> WarmupSweep(const SweepLimits& limits);

// How much a step computes, by and large, to put steps in order.
std::uint64_t WarmupWork(const StepTimeSample& step);

}  // namespace penstock::shard
