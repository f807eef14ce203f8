// Runs the worst steps that the limits allow, before the group serves, so that memory which any
// step will need is taken here (shorter ones where steps take none, Backend::TakesMemoryInSteps);
// then times a sweep of steps, the cost model's calibration.
//
// The steps read and write a small cache whose blocks all sequences share; what they compute means
// nothing. With world > 1 every rank must run the same warm-up at the same time.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "common/plan/group.h"
#include "common/time.h"
#include "shard/backend/backend.h"

namespace penstock::shard {

// The sweep is repeated up to kWarmupRounds times while it is within this time; medians are kept.
// It leaves out what would take it beyond, as far as the steps before tell.
constexpr Duration kWarmupTime = std::chrono::seconds(6);
constexpr std::size_t kWarmupRounds = 3;

// Where the worst steps already took long, the sweep has what is left of this, but so much at
// least.
constexpr Duration kWholeWarmupTime = std::chrono::seconds(18);
constexpr Duration kLeastSweepTime = std::chrono::seconds(3);

// What the first touch of memory adds to a worst step of this length is little beside it: its time
// counts, and the sweep need not run it again.
constexpr Duration kSureTime = std::chrono::milliseconds(500);

// A table of an earlier start holds as long as the steps that are timed again take as long, within
// this factor: neighbours come and go, another machine is another one.
constexpr int kKnownWithin = 2;

// A sweep that was cut shorter (a starved machine) is not worth keeping for the next start.
constexpr std::size_t kLeastKept = 8;

struct WarmupShape {
  std::uint32_t max_step_tokens = 0;
  std::uint32_t max_sequences = 0;
  std::uint32_t max_sequence_length = 0;
  std::uint32_t block_size = 16;
  std::uint32_t max_logit_rows = 64;
  std::uint32_t max_candidates = 0;      // of one sequence; 0 = no contrastive search
  std::uint32_t max_candidate_rows = 0;  // of all sequences of a step
  std::uint64_t pool_tokens = 0;         // what the cache will hold at most: bounds contexts
  std::uint32_t cells = 0;               // above 0: decodes run in the padded KV layout, in these
};

struct WarmupControl {
  // Asked before each step; when it says no, Cancelled.
  std::function<bool()> go_on;
  // Whether the sweep goes on, `mine` being this rank's opinion: the same answer on every rank.
  std::function<absl::StatusOr<bool>(bool mine)> agree;
  // The table of an earlier start, for the same steps and the same on every rank; empty: none.
  std::vector<StepTimeSample> known = {};
  std::function<Time()> clock = SteadyNow;
};

// Allocates the small cache and leaves it allocated. Gives `known` itself where it still holds, by
// two of its cheapest steps; the worst ones then run only if they take memory.
absl::StatusOr<std::vector<StepTimeSample>> RunWarmup(const WarmupShape& shape, Backend& backend,
                                                      const WarmupControl& control);

}  // namespace penstock::shard
