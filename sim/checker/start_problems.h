// Compares the start of a sequence with its request (G3).
#pragma once

#include <string>
#include <vector>

#include "common/plan/step_plan.h"
#include "sim/checker/request_model.h"

namespace penstock::sim {

// The names of the fields that differ from those of the request, or of its rest after a preemption.
std::vector<std::string> StartProblems(const SequenceStart& start, const RequestModel& request);

}  // namespace penstock::sim
