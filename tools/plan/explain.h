// What would change the choice of a plan: a price, a power, a rate, another objective.
#pragma once

#include <string>
#include <vector>

#include "tools/plan/search.h"

namespace penstock::plan {

// One sentence each. `plans`: the best of a search, the best first. Runs the simulator for half and
// twice each bound of the objective, on half of the trace.
std::vector<std::string> WhatWouldChange(const std::vector<Plan>& plans, const Load& load,
                                         const Goal& goal, unsigned threads);

}  // namespace penstock::plan
