// The text of --env for bug reports: the lines of text-generation-inference, then those of
// Penstock.
#pragma once

#include <string>

namespace penstock::launcher {

// Several lines, without a line break at the end. Runs nvidia-smi if there is one, for at most ten
// seconds.
std::string RuntimeEnvironment();

}  // namespace penstock::launcher
