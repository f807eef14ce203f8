// Checks of the programs themselves and of the device that they compute on.
#pragma once

#include <map>
#include <string>

#include "cli/doctor/finding.h"
#include "common/options/values.h"
#include "launcher/launch_plan.h"

namespace penstock::cli {

// The versions that programs print, by name; empty: it cannot be started.
Finding CheckVersions(const std::map<std::string, std::string>& versions);

// Launcher, router and shard beside this program.
Finding CheckPrograms(const launcher::Machine& machine);

// --device cuda without a driver or without penstock-shard-cuda.
Finding CheckDevice(const options::Values& values, const launcher::Machine& machine);

}  // namespace penstock::cli
