// The step times of a recorded run: how long its steps took, as a function of what they computed.
//
// The cost model of the warm-up table predicts a step alone on the shard. A step of the run also
// has the way to the shard and back, and the machine may have been busier. So the time of a step is
// taken as base + factor * prediction. Weighted least squares of the relative error find both.
// Times scatter around this; each simulated step draws its scatter from that of the recorded steps.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/plan/group.h"
#include "common/time.h"
#include "scheduler/step/step_shape.h"
#include "sim/fleet/fleet.h"

namespace penstock::sim {

struct TimedStep {
  scheduler::StepShape shape;
  Duration time{0};
};

// A copy of the function draws the same times again. Without steps, the prediction itself. An error
// if the table has too few step times.
absl::StatusOr<StepTime> FitStepTimes(const Calibration& warm_up,
                                      const std::vector<TimedStep>& steps);

}  // namespace penstock::sim
