// Runs the worst steps that the limits allow, before the group serves: memory that any step will
// need is taken here, and the times are the cost model's calibration.
//
// The steps read and write a small cache whose blocks all sequences share; what they compute means
// nothing. With world > 1 every rank must run the same warm-up at the same time.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "common/plan/group.h"
#include "shard/backend/backend.h"

namespace penstock::shard {

struct WarmupShape {
  std::uint32_t max_step_tokens = 0;
  std::uint32_t max_sequences = 0;
  std::uint32_t max_sequence_length = 0;
  std::uint32_t block_size = 16;
  std::uint32_t max_logit_rows = 64;
  std::uint64_t pool_tokens = 0;  // what the cache will hold at most: bounds contexts
};

// Allocates the small cache and leaves it allocated. `go_on` is asked before each step; when it
// says no, Cancelled.
absl::StatusOr<std::vector<StepTimeSample>> RunWarmup(const WarmupShape& shape, Backend& backend,
                                                      const std::function<bool()>& go_on);

}  // namespace penstock::shard
