// Checks of the machine and of the limits of this process. The caller passes the measured values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cli/doctor/finding.h"
#include "common/memory_groups.h"

namespace penstock::cli {

Finding CheckInstructions(bool avx2_and_fma);

// The hard limit of open files; the router raises the soft one to it.
Finding CheckOpenFiles(std::uint64_t hard);

// `ulimit -v` in bytes; above any machine's memory: none.
Finding CheckAddressLimit(std::uint64_t bytes, std::uint64_t machine_bytes);

// The least limit of the control groups.
Finding CheckMemoryGroups(const std::vector<MemoryGroup>& groups);

// /dev/shm carries the sums of several ranks.
Finding CheckSharedMemory(std::uint64_t free_bytes, std::int64_t ranks);

// Times in seconds since 1970. `newest_file`: of the model's files; 0: none. `synchronised`: what
// the kernel says.
Finding CheckClock(std::int64_t now, std::int64_t newest_file, bool synchronised);

// A proxy that would catch requests to this machine.
Finding CheckProxy(const std::function<const char*(const char*)>& environment);

// All of them for this machine.
Findings CheckMachine(std::int64_t ranks, const std::string& model_folder);

}  // namespace penstock::cli
