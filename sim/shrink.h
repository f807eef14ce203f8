// Finds a short scenario that still fails, by delta debugging (Zeller and Hildebrandt, 2002) of the
// script's events. Each try is a whole simulation. Deterministic.
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

// Requires: `scenario` fails. The result breaks the same guarantee.
Shrunk Shrink(const Scenario& scenario);

// The guarantee that the first finding names, for example "G3".
std::string GuaranteeOf(const RunReport& report);

}  // namespace penstock::sim
