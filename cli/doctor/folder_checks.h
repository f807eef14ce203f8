// Checks of the folders that a server writes to.
#pragma once

#include <cstdint>
#include <string>

#include "cli/doctor/finding.h"
#include "common/options/values.h"

namespace penstock::cli {

// Whether the folder, or the nearest one above it that exists, can be written and has space.
Finding CheckFolder(const std::string& name, const std::string& folder, std::uint64_t least_free);

// The hub cache (if `downloads`), the weights cache, and the folder of sockets.
Findings CheckFolders(const options::Values& values, const std::string& hub_cache, bool downloads);

}  // namespace penstock::cli
