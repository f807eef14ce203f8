// The configuration of a plan, as `penstock-launcher --config FILE` takes it.
#pragma once

#include <string>

#include "tools/plan/plan_options.h"
#include "tools/plan/search.h"

namespace penstock::plan {

// One host starts the groups of its own. A comment says how many hosts there are.
std::string LauncherConfig(const PlanOptions& options, const Plan& plan);

}  // namespace penstock::plan
