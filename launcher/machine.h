// What the launcher asks its machine.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace penstock::launcher {

// Cores that this process may use: its affinity, and the CPU quota of its control group, rounded
// up.
int UsableCores();

// Cores of a control group's cpu.max ("150000 100000" is 2); nothing to go by is 0.
int CoresOfQuota(const std::string& cpu_max);

// Folder of the running executable.
absl::StatusOr<std::string> ProgramFolder();

}  // namespace penstock::launcher
