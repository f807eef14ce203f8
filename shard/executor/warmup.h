// The warm-up of a group. It first runs the worst steps that the limits allow, so that memory which
// any step needs is taken before the group serves. (Shorter ones, where Backend::TakesMemoryInSteps
// is false.) Then it times a sweep of steps, from which the router fits its cost model.
//
// The steps read and write a small cache whose blocks all sequences share; their results mean
// nothing. With several ranks every rank runs the same warm-up at the same time.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "common/plan/group.h"
#include "common/time.h"
#include "shard/backend/backend.h"

namespace penstock::shard {

// The sweep is run up to kWarmupRounds times and for about kWarmupTime. A step that is expected to
// take longer than the time left is left out. Worst steps that take no memory count towards this
// time, but kLeastSweepTime is left for the others.
constexpr Duration kWarmupTime = std::chrono::seconds(6);
constexpr Duration kLeastSweepTime = std::chrono::seconds(2);
constexpr std::size_t kWarmupRounds = 3;

// The table of an earlier warm-up is used again if two of its steps still take as long, within this
// factor.
constexpr int kKeptWithin = 2;

struct WarmupShape {
  std::uint32_t max_step_tokens = 0;
  std::uint32_t max_sequences = 0;
  std::uint32_t max_sequence_length = 0;
  std::uint32_t block_size = 16;
  std::uint32_t max_logit_rows = 64;
  std::uint32_t max_candidates = 0;      // of one sequence; 0 = no contrastive search
  std::uint32_t max_candidate_rows = 0;  // of all sequences of a step
  std::uint64_t pool_tokens = 0;         // most tokens in the cache, or cells in use
  std::uint32_t window_blocks = 0;       // of KV group 1, at most; 0: as many as of group 0
  std::uint32_t cells = 0;               // for padded KV rows (KvLayout)
  bool states = false;                   // the model has recurrent layers
};

struct WarmupControl {
  // Called before each step. False: RunWarmup ends with Cancelled.
  std::function<bool()> continues;
  // Gives rank 0's opinion to every rank; `mine` is that of this rank.
  std::function<absl::StatusOr<bool>(bool mine)> agree;
  // The table of an earlier start, for the same steps and the same on every rank; empty: none.
  std::vector<StepTimeSample> kept = {};
  std::function<Time()> clock = SteadyNow;
  // Gets the number of steps that were left out.
  std::function<void(std::size_t)> on_left_out = [](std::size_t) {};
};

// Allocates the small cache and leaves it allocated. Returns `kept` if two of its cheapest steps
// still take as long; the worst steps then run only if they take memory.
absl::StatusOr<std::vector<StepTimeSample>> RunWarmup(const WarmupShape& shape, Backend& backend,
                                                      const WarmupControl& control);

}  // namespace penstock::shard
