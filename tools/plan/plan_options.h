// Command line of penstock-plan.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/plan/machine_list.h"
#include "tools/plan/plan_model.h"
#include "tools/plan/search.h"

namespace penstock::plan {

struct PlanOptions {
  PlanModel model;
  std::vector<MachineType> machines;
  std::vector<int> ranks;
  std::uint32_t slots = 128;
  Space space;  // without types
  Load load;
  Goal goal;
  double own_rate = 0;  // of the trace; 0: it has no times
  unsigned threads = 2;
  bool changes = true;
  std::string json;
  std::string write;
};

struct CommandLine {
  absl::StatusOr<PlanOptions> options;  // Cancelled: everything was printed already
  int exit_code = 0;                    // when there are no options
};

CommandLine ReadCommandLine(std::string_view program, int argc, const char* const* argv);

}  // namespace penstock::plan
