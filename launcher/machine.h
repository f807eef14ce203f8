// What the launcher asks its machine.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

namespace penstock::launcher {

// Cores that this process may use: its affinity, and the CPU quota of its control group, rounded
// up.
int UsableCores();

// Cores of a control group's cpu.max ("150000 100000" is 2); nothing to go by is 0.
int CoresOfQuota(const std::string& cpu_max);

// GPUs that this process may use, by the names that CUDA_VISIBLE_DEVICES takes: those of the given
// list (that variable's present value, nullptr when it is not set), else one index for each
// device that the NVIDIA driver shows in `devices`. CUDA counts those from 0, whatever numbers they
// have: a container may have been given nvidia3 alone.
std::vector<std::string> UsableGpus(const char* visible_devices,
                                    const std::string& devices = "/dev");

// Folder of the running executable.
absl::StatusOr<std::string> ProgramFolder();

}  // namespace penstock::launcher
