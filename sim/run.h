// One simulated run under all checks: the checker after every input, the simulated shards' own
// complaints, every token against what the model says alone, and a second core that gets the same
// inputs and must put out the same bytes (G9). An assertion of the core counts as a finding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario.h"

namespace penstock::sim {

struct RunReport {
  std::vector<std::string> findings;  // of the first input that had any; none: all guarantees hold
  std::uint64_t inputs = 0;
  std::uint64_t steps = 0;
  std::uint64_t tokens = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t cached_tokens = 0;  // found in the prefix cache at a start
  std::string log;                  // the input log up to the finding, when asked for

  bool passed() const { return findings.empty(); }
};

RunReport RunScenario(const Scenario& scenario, bool keep_log = false);

}  // namespace penstock::sim
