// Options of `penstock-replay trace` and `search`: a workload, a fleet with its policies, an
// objective, and the output files.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>

#include "sim/fleet/fleet.h"
#include "sim/fleet/summary.h"
#include "sim/trace/trace.h"

namespace penstock::replay {

struct TraceOptions {
  sim::Trace trace;  // as read or drawn and shaped, at its own arrival times
  sim::FleetOptions fleet;
  std::optional<double> forecast_tau;  // of the fleet's forecasts and the true lengths
  std::string batching;
  // A second run with this batching (`trace`).
  std::optional<sim::FleetOptions> compared_fleet;
  std::string compared_batching;
  sim::Objective objective;
  std::uint64_t seed = 1;
  double rate = 0;  // requests/s; 0 = the trace's own arrival times

  std::string json;  // files; empty = none
  std::string csv;
  std::string svg;

  // `search`
  double attainment = 0.9;
  double min_rate = 0.01;
  double max_rate = 10000;
  double precision = 0.01;
};

struct TraceCommandLine {
  absl::StatusOr<TraceOptions> options;  // Cancelled: everything was printed already
  int exit_code = 0;                     // when there are no options
};

// `argv`: the subcommand, FILE or the word uniform, then options.
TraceCommandLine ReadTraceCommandLine(std::string_view program, int argc, const char* const* argv);

// The trace at the given rate (0: as it is).
sim::Trace AtRate(const TraceOptions& options, double rate);

}  // namespace penstock::replay
