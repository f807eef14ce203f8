// The shortest scenario that still fails: delta debugging (Zeller and Hildebrandt, 2002) over the
// script's events, each try a whole new simulation. Deterministic.
#pragma once

#include <cstdint>
#include <string>

#include "sim/run.h"
#include "sim/scenario.h"

namespace penstock::sim {

struct Shrunk {
  Scenario scenario;
  RunReport report;  // of the shrunk scenario, with its log
  std::uint32_t tries = 0;
};

// `scenario` must fail. Only a failure of the same guarantee counts as the same failure.
Shrunk Shrink(const Scenario& scenario);

// "G3" of "G3: …".
std::string GuaranteeOf(const RunReport& report);

}  // namespace penstock::sim
