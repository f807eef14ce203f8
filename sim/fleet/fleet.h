// A trace on simulated replica groups: the real core under a virtual clock, step times from a
// machine model, every output exactly as long as the trace says. What `penstock-replay trace` runs.
//
// Deterministic: same trace and options, same result. One thread; prompts are made when they
// arrive, so a long trace does not have to fit in memory at once.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/plan/group.h"
#include "common/time.h"
#include "scheduler/config.h"
#include "scheduler/step/step_shape.h"
#include "sim/trace/trace.h"

namespace penstock::sim {

using StepTime = std::function<Duration(const scheduler::StepShape&)>;

struct FleetOptions {
  scheduler::Config config;
  GroupCapacity capacity;  // of each group
  std::uint32_t groups = 1;
  StepTime step_time;
  // Request-level batching as the classic servers did it: the rows of ended members are computed
  // until the longest member of their batch is done, all contexts padded to the longest, and every
  // answer is given when the batch ends. For Batching::kNone and kStatic.
  bool padded_batches = false;
  // Given: what a request declares as its max_new_tokens (its true length, if that is more); its
  // end is then found as a stop string's is, from its tokens. Else the true length is declared.
  std::optional<std::uint32_t> declared_output;
  bool forecast = false;    // requests carry their true length as the prediction
  bool keep_steps = false;  // fill FleetResult::steps
};

struct RequestRecord {
  Duration arrival{0};
  std::optional<Duration> first_token;
  std::optional<Duration> end;  // nothing: refused or failed
  Duration worst_gap{0};        // between two token events
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;  // of the prompt, at the first start
  std::uint32_t output_tokens = 0;
  std::uint32_t preemptions = 0;

  bool ok() const { return end.has_value(); }
};

// One step as it was planned.
struct StepRecord {
  Duration at{0};
  std::uint32_t group = 0;
  std::uint32_t decode_rows = 0;
  std::uint32_t prefill_tokens = 0;
  std::uint32_t waiting = 0;
  std::uint32_t blocks_free = 0;
};

struct FleetResult {
  std::vector<RequestRecord> requests;         // in the trace's order
  std::vector<double> gaps_ms;                 // all gaps between two token events of a request
  std::vector<StepRecord> steps;               // with keep_steps
  std::vector<std::uint64_t> computed_tokens;  // prompt tokens per group that the cache had not
  std::uint64_t step_count = 0;
  std::uint32_t most_decode_rows = 0;
  Duration end{0};
  std::string first_error;  // of a request that failed
};

// Invalid options, or plans that no shard could execute (a defect of the core).
absl::StatusOr<FleetResult> RunFleet(const Trace& trace, const FleetOptions& options);

}  // namespace penstock::sim
