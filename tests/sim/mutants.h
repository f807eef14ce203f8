// The planted bugs (scheduler/mutant.h) and what each breaks.
#pragma once

#include <string>

namespace penstock::sim {

// In this thread; "" = none. Does nothing round a core without planted bugs.
void SwitchMutant(const std::string& name);

}  // namespace penstock::sim
