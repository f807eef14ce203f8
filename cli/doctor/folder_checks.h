// Checks of the folders that a server writes to.
#pragma once

#include <cstdint>
#include <string>

#include "cli/doctor/finding.h"
#include "common/options/values.h"

namespace penstock::cli {

// Whether the folder, or the nearest one above it that exists, can be written and has space.
Finding CheckFolder(const std::string& name, const std::string& folder, std::uint64_t least_free);

struct HubUse {
  std::string cache;
  bool named = false;     // --model-id is a model of the hub
  bool complete = false;  // it is in the cache
};

// The hub cache, the weights cache, and the folder of sockets. `weights`: bytes of the weights of
// the model; 0: unknown.
Findings CheckFolders(const options::Values& values, const HubUse& hub, std::uint64_t weights);

}  // namespace penstock::cli
