#include "tests/sim/mutants/mutants.h"

namespace penstock::sim {

void SwitchMutant(const std::string&) {}

}  // namespace penstock::sim
