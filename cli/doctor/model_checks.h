// Checks of the folder of a model.
#pragma once

#include <string>

#include "cli/doctor/finding.h"
#include "common/options/values.h"
#include "launcher/launch_plan.h"

namespace penstock::cli {

// Checks the files of a model's folder. Asks no shard.
Findings CheckModelFiles(const std::string& folder);

// Whether a shard can run the model and has the memory for it.
Finding CheckModelRuns(const options::Values& values, const launcher::Machine& machine);

// What the router checks before shards load: keys, certificates, templates, files that it writes.
Finding CheckRouterStarts(const options::Values& values, launcher::Machine machine);

}  // namespace penstock::cli
