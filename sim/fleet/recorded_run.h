// A run that a router recorded (--record): its requests and settings, how they fared, and the step
// times of its groups. `penstock-replay what-if` runs the same requests with other settings.
//
// An input log has the time of every input. The core makes the same outputs of it again, so the
// times of all events are known too.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "common/plan/group.h"
#include "common/request/decision.h"
#include "scheduler/config.h"
#include "scheduler/input.h"
#include "sim/fleet/fleet.h"

namespace penstock::sim {

struct RecordedRequest {
  scheduler::Arrival arrival;
  // Time in the queue, by what was short.
  std::map<Budget, Duration> waited;
};

struct RecordedRun {
  scheduler::Config config;
  GroupCapacity capacity;  // of the first group
  Calibration warm_up;     // of the first group
  std::uint32_t groups = 0;
  // Row i of all three is one request. Requests without a token are left out.
  std::vector<RecordedRequest> requests;
  Trace trace;         // when they arrived, and how long they were
  FleetResult result;  // as it was
  StepTime step_time;
  std::uint64_t left_out = 0;
  std::uint64_t losses = 0;  // of groups; a simulated group is never lost
};

// The text of an input log. An error if it cannot be read, or has no requests.
absl::StatusOr<RecordedRun> ReadRecordedRun(std::string_view log);

}  // namespace penstock::sim
