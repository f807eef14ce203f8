// Figures of a run: latency percentiles, the share of requests that met their objective, hit rate,
// preemptions and balance. Also finds the highest rate that still meets an objective.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "common/percentiles.h"
#include "sim/fleet/fleet.h"

namespace penstock::sim {

// A request meets its objective if it succeeded within every bound that is set.
struct Objective {
  std::optional<Duration> ttft;        // arrival to first token
  std::optional<Duration> worst_gap;   // longest time between two tokens
  std::optional<Duration> normalised;  // end to end per output token
  // Mean time between two tokens of the request.
  std::optional<Duration> inter_token = std::nullopt;

  bool Met(const RequestRecord& record) const;
};

struct Summary {
  std::uint64_t requests = 0;
  std::uint64_t failed = 0;
  double seconds = 0;              // virtual time until the last answer
  double requests_per_second = 0;  // answered
  double tokens_per_second = 0;    // output
  Percentiles ttft_ms, inter_token_ms, normalised_ms, end_to_end_ms;
  Percentiles longest_wait_ms;  // of a request: for its first token or between two
  double attainment = 0;        // share of all requests that met the objective
  double goodput = 0;           // requests that met the objective, per second
  double hit_rate = 0;          // cached share of prompt tokens, of requests that started
  std::uint64_t cached_tokens = 0;
  std::uint64_t preemptions = 0;
  std::uint32_t most_preemptions = 0;  // of one request
  double imbalance = 0;                // most / mean prompt tokens computed by a group
  std::uint64_t steps = 0;
  std::uint32_t most_decode_rows = 0;
  std::optional<double> forecast_tau;  // set by the caller
};
Summary Summarise(const FleetResult& result, const Objective& objective);

// Finds by bisection the highest value in [low, high] for which `good` holds, to within `precision`
// (relative). `good` must hold below some threshold and fail above it. nullopt if it fails at
// `low`.
std::optional<double> HighestGood(double low, double high, double precision,
                                  const std::function<bool(double)>& good);

}  // namespace penstock::sim
