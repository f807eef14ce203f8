// Runs a trace on simulated replica groups with the real core and a virtual clock. A machine model
// gives the step times, and each output is as long as the trace says. `penstock-replay trace` uses
// it.
//
// Deterministic: the same trace and options give the same result. One thread. A prompt is made when
// its request arrives, so the prompts of a long trace are never in memory together.
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
#include "scheduler/input.h"
#include "scheduler/step/step_shape.h"
#include "sim/trace/trace.h"

namespace penstock::sim {

using StepTime = std::function<Duration(const scheduler::StepShape&)>;

struct FleetOptions {
  scheduler::Config config;
  GroupCapacity capacity;  // of each group
  std::uint32_t groups = 1;
  StepTime step_time;
  // Request-level batching as in early servers. All contexts are padded to the longest. Rows of
  // ended members are computed until the longest member ends. Then all answers are given.
  // For Batching::kNone and kStatic.
  bool padded_batches = false;
  // The max_new_tokens that a request declares, but at least its true length. The end is then found
  // in the tokens, as for a stop string. If not set, requests declare their true length.
  std::optional<std::uint32_t> declared_output;
  // One predicted output length for each request, or none: the router's with --order learned, else
  // the client's.
  std::vector<std::uint32_t> forecasts;
  // Makes the request of a row of the trace. The fleet sets its id, and ends it after the row's
  // output_tokens. If not set, its prompt is MakePrompt's.
  std::function<scheduler::Arrival(std::size_t)> make_request;
  // What the groups report when they are up. If not set, WarmUpTable(step_time).
  std::optional<Calibration> warm_up;
  bool keep_steps = false;  // fill FleetResult::steps
};

struct RequestRecord {
  Duration arrival{0};
  std::optional<Duration> first_token;
  std::optional<Duration> end;  // not set if the request was refused or failed
  Duration worst_gap{0};        // between two token events
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;  // of the prompt, at the first start
  std::uint32_t output_tokens = 0;
  std::uint32_t preemptions = 0;

  bool ok() const { return end.has_value(); }
};

// A step as planned.
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
  std::vector<std::uint64_t> computed_tokens;  // per group: prompt tokens that were not cached
  std::uint64_t step_count = 0;
  std::uint32_t most_decode_rows = 0;
  Duration end{0};
  std::string first_error;  // of the first request that failed
};

// An error means invalid options, or a plan that a shard could not execute (a bug of the core).
absl::StatusOr<FleetResult> RunFleet(const Trace& trace, const FleetOptions& options);

}  // namespace penstock::sim
