// Combinations of settings and requests that independent draws rarely give.
#pragma once

#include "sim/random.h"
#include "sim/scenario.h"

namespace penstock::sim {

void DrawRareCases(Random& random, Scenario& scenario);

}  // namespace penstock::sim
