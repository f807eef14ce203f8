// Checks of decode sub-batches that need the plan or the lengths alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/step_plan.h"
#include "scheduler/output.h"

namespace penstock::sim {

// One line for each way in which the plan's groups do not partition its segments.
std::vector<std::string> PartitionProblems(const StepPlan& plan);

// One line for each thing that the step's information says wrongly about its decode sub-batches.
std::vector<std::string> SplitProblems(const StepPlan& plan, const scheduler::StepInfo& info,
                                       std::uint32_t max_splits);

// The minimum of padded positions for rows of these lengths in at most `max_parts` sub-batches.
// Tries every cut of the sorted lengths.
std::uint64_t CellsOfBestPartition(std::vector<std::uint64_t> lengths, std::uint32_t max_parts);

}  // namespace penstock::sim
