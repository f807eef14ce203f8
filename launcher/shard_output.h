// Runs a shard of a planned server for what it prints, without starting the server.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/options/values.h"
#include "launcher/child_output.h"
#include "launcher/launch_plan.h"

namespace penstock::launcher {

// This machine, without a socket prefix.
absl::StatusOr<Machine> FindMachine();

// Runs the shard program as the launcher would start rank 0, plus `argument` ("--print-config").
// Returns what it prints. The model-id of `values` must be a folder.
absl::StatusOr<ChildOutput> AskShard(const options::Values& values, Machine machine,
                                     const std::string& argument);

}  // namespace penstock::launcher
