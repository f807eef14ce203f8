#include "tests/sim/mutants.h"

namespace penstock::sim {

void SwitchMutant(const std::string&) {}

}  // namespace penstock::sim
