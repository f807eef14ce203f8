// Inputs and outputs as text, for a person who reads a failing run.
#pragma once

#include <string>

#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"

namespace penstock::sim {

std::string Describe(const scheduler::Config& config);
// One line.
std::string Describe(const scheduler::Input& input);
// One line for each plan, event and decision.
std::string Describe(const scheduler::Outputs& out);

}  // namespace penstock::sim
