// The step times that the warm-up of a shard would measure on a machine with known step times. 32
// points: prefills alone, decode batches of several contexts, and chunks after a cached prefix.
#pragma once

#include "common/plan/group.h"
#include "sim/fleet/fleet.h"

namespace penstock::sim {

Calibration WarmUpTable(const StepTime& step_time);

}  // namespace penstock::sim
