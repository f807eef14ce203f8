// What --env tells about the machine, for bug reports: text-generation-inference's lines, then
// ours.
#pragma once

#include <string>

namespace penstock::launcher {

// Several lines without a line break at the end. Asks nvidia-smi, where there is one, and waits for
// it for at most ten seconds.
std::string RuntimeEnvironment();

}  // namespace penstock::launcher
