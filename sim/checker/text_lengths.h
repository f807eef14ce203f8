// What a length rule (common/plan/group.h) means for one sequence of the checker's model.
#pragma once

#include <string_view>

#include "common/plan/group.h"
#include "common/plan/step_plan.h"
#include "sim/checker/group_model.h"

namespace penstock::sim {

// Sets the histories of the prompt and the most positions of a sequence that starts.
void SetTextLengths(const GroupCapacity& capacity, const SequenceStart& start,
                    std::string_view tenant, SequenceModel& sequence);

}  // namespace penstock::sim
