// Runs one scenario under all checks:
//   - the checker, after every input;
//   - violations that the simulated shards record;
//   - each output against that of the same request run alone;
//   - in a quarter of the scenarios a second core, which must give the same bytes for the same
//     inputs (G9). It takes as much time as the core, and what it finds, it finds in most
//     scenarios.
// A failed assertion of the core is a finding too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario.h"

namespace penstock::sim {

struct RunReport {
  std::vector<std::string>
      findings;  // of the first input that has any; empty if all guarantees hold
  std::uint64_t inputs = 0;
  std::uint64_t steps = 0;
  std::uint64_t tokens = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t cached_tokens = 0;  // found in the prefix cache when sequences start
  std::string log;                  // the input log up to the finding, if kept

  bool passed() const { return findings.empty(); }
};

// The scenario of this seed has a second core.
bool HasTwin(std::uint64_t seed);

RunReport RunScenario(const Scenario& scenario, bool keep_log = false);

}  // namespace penstock::sim
