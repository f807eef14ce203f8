// The table that a shard's warm-up would measure on a machine with known step times: 32 points,
// prefills alone, decode batches by context, chunks after a cached prefix.
#pragma once

#include "common/plan/group.h"
#include "sim/fleet/fleet.h"

namespace penstock::sim {

Calibration WarmUpTable(const StepTime& step_time);

}  // namespace penstock::sim
