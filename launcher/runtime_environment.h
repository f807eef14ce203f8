// The text of --env for bug reports.
#pragma once

#include <string>

namespace penstock::launcher {

// Several lines, without a line break at the end. Runs nvidia-smi if there is one, for at most ten
// seconds. `as_tgi`: with every line that text-generation-launcher has.
std::string RuntimeEnvironment(bool as_tgi);

}  // namespace penstock::launcher
