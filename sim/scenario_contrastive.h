// Contrastive search beside other requests of a scenario; sometimes where no group offers it.
#pragma once

#include "sim/random.h"
#include "sim/scenario.h"

namespace penstock::sim {

void DrawContrastive(Random& random, Scenario& scenario);

}  // namespace penstock::sim
