// Measured step times of a group: the warm-up table that a shard keeps in --weights-cache, or the
// run that a router recorded (--record), which has the warm-up table and steps under load.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/plan/group.h"
#include "sim/fleet/fleet.h"

namespace penstock::plan {

struct StepTable {
  Calibration warm_up;
  sim::StepTime step_time;
  std::optional<GroupCapacity> capacity;  // of a recorded run
};

// Whether a file is what --record writes.
bool IsInputLog(std::string_view text);

// The error names the file, and its line if there is one.
absl::StatusOr<StepTable> ReadStepTable(const std::string& path);

}  // namespace penstock::plan
