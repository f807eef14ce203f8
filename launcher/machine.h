// Facts about the machine.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

namespace penstock::launcher {

// Cores that this process may use: its affinity, and the CPU quota of its control group, rounded
// up.
int UsableCores();

// Cores of a control group's cpu.max ("150000 100000" is 2); 0 if unknown.
int CoresOfQuota(const std::string& cpu_max);

// GPUs that this process may use, as names for CUDA_VISIBLE_DEVICES. They are those of the given
// list (the value of that variable), or with nullptr one index for each NVIDIA device in the folder
// `devices`. CUDA numbers devices from 0, even if a container has nvidia3 alone.
std::vector<std::string> UsableGpus(const char* visible_devices,
                                    const std::string& devices = "/dev");

// Folder of the running executable.
absl::StatusOr<std::string> ProgramFolder();

}  // namespace penstock::launcher
