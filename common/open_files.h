// The limit of open files of a process (RLIMIT_NOFILE).
#pragma once

#include <cstdint>

namespace penstock {

// Raises the soft limit to the hard limit. Returns the limit that holds then.
std::uint64_t RaiseOpenFiles();

}  // namespace penstock
