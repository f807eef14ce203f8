// The planted bugs (scheduler/mutant.h) and the guarantee that each breaks.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace penstock::sim {

struct Mutant {
  std::string_view name;
  std::string_view breaks;  // the guarantee, as the table shows it
};

// Every bug that a hook in scheduler/ names. A new hook gets a line in mutants.cc.
std::span<const Mutant> AllMutants();

// In this thread; "" = none. Does nothing round a core without planted bugs.
void SwitchMutant(const std::string& name);

}  // namespace penstock::sim
