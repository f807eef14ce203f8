#include "launcher/machine.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace penstock::launcher {
namespace {

// nvidia0, but not nvidiactl or nvidia-uvm.
bool IsGpu(std::string_view device) {
  constexpr std::string_view kPrefix = "nvidia";
  return device.size() > kPrefix.size() && device.starts_with(kPrefix) &&
         device.find_first_not_of("0123456789", kPrefix.size()) == std::string_view::npos;
}

}  // namespace

int CoresOfQuota(const std::string& cpu_max) {
  std::istringstream text(cpu_max);
  long long quota = 0;
  long long period = 0;
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<long long>((quota + period - 1) / period, 1 << 16));
}

int UsableCores() {
  cpu_set_t set;
  int cores = 1;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) cores = std::max(1, CPU_COUNT(&set));
  // In a container, its own cgroup is the root of the mounted tree. So its limit is there.
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string line;
  std::getline(file, line);
  const int quota = CoresOfQuota(line);
  return quota > 0 ? std::min(cores, quota) : cores;
}

std::vector<std::string> UsableGpus(const char* visible_devices, const std::string& devices) {
  std::vector<std::string> gpus;
  if (visible_devices != nullptr) {
    std::istringstream list(visible_devices);
    // As in CUDA, the list ends at the first entry that is empty or -1.
    for (std::string name; std::getline(list, name, ',') && !name.empty() && name != "-1";) {
      gpus.push_back(name);
    }
    return gpus;
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(devices, error)) {
    if (IsGpu(entry.path().filename().string())) gpus.push_back(std::to_string(gpus.size()));
  }
  return gpus;
}

absl::StatusOr<std::string> ProgramFolder() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::UnavailableError("/proc/self/exe cannot be read: " + error.message());
  return program.parent_path().string();
}

}  // namespace penstock::launcher
