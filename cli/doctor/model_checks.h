// Checks of the folder of a model.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "cli/doctor/finding.h"
#include "cli/memory_needs.h"
#include "common/options/values.h"
#include "launcher/launch_plan.h"

namespace penstock::cli {

// Checks the files of a model's folder. Asks no shard. `other_template`: the file that has the chat
// template; empty: the folder has it.
Findings CheckModelFiles(const std::string& folder, const std::string& other_template);

// Whether a shard, which said what it needs, can run the model and has the memory for it.
Finding CheckModelRuns(const absl::StatusOr<MemoryNeeds>& needs);

// What the router checks without shards: keys, certificates, chat template, files that it writes.
Finding CheckRouterStarts(const options::Values& values, launcher::Machine machine);

}  // namespace penstock::cli
