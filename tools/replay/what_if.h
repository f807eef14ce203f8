// The requests of a recorded run on a simulated fleet, with the settings that they had or others.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/fleet/fleet.h"
#include "sim/fleet/recorded_run.h"

namespace penstock::replay {

// Which requests arrive when. Row i of the trace is request `request[i]` of the run.
struct Workload {
  sim::Trace trace;
  std::vector<std::uint32_t> request;
  std::vector<std::uint32_t> copy;  // 0: the request itself
};

// The recorded arrivals, `factor` times as many. Below 1, requests are left out at random. Above 1,
// copies arrive before the next request, and share prefixes with copies of the same number only.
Workload Multiply(const sim::RecordedRun& run, double factor, std::uint64_t seed);

// The fleet that the run had. Drafts are not simulated.
sim::FleetOptions AsRecorded(const sim::RecordedRun& run);

absl::StatusOr<sim::FleetResult> Simulate(const sim::RecordedRun& run, const Workload& workload,
                                          sim::FleetOptions fleet);

// A setting that might have helped, as the command line would name it.
struct Change {
  std::string text;
  std::function<void(sim::FleetOptions&)> make;
};
std::vector<Change> UsualChanges(const sim::RecordedRun& run);

}  // namespace penstock::replay
