// A group of a machine type: step times and capacity for a number of ranks.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/group.h"
#include "sim/fleet/fleet.h"
#include "tools/plan/machine_list.h"
#include "tools/plan/plan_model.h"

namespace penstock::plan {

struct GroupType {
  const MachineType* machine = nullptr;
  int ranks = 1;
  std::string source;  // of the step times, for the report
  GroupCapacity capacity;
  Calibration warm_up;
  sim::StepTime step_time;

  std::uint32_t MostGroups() const;  // that the machines can hold, and a launcher can start
};

struct GroupTypes {
  std::vector<GroupType> types;
  std::vector<std::string> left_out;  // one line each: which, and why
};

// All numbers of ranks in `ranks` on all machines. `machines` must outlive the result. An error if
// a table cannot be read, or if none is left.
absl::StatusOr<GroupTypes> MakeGroupTypes(const PlanModel& model,
                                          const std::vector<MachineType>& machines,
                                          const std::vector<int>& ranks, std::uint32_t slots);

}  // namespace penstock::plan
