// What several commands read of their options: the policies and limits of the scheduler, and the
// objective of a request.
#pragma once

#include "common/options/values.h"
#include "scheduler/config.h"
#include "sim/fleet/summary.h"

namespace penstock::replay {

// Sets what has a value in `values`: the token and batch limits, --prefill, --admission, --order,
// --placement and their parameters.
void SetPolicies(const options::Values& values, scheduler::Config& config);

sim::Objective ReadObjective(const options::Values& values);

}  // namespace penstock::replay
