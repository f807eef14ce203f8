// The control groups (cgroup v1 and v2) that bound the memory of this process: its own group and
// those around it, as a container or a service manager set them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock {

struct MemoryGroup {
  std::string limit_file;  // "/sys/fs/cgroup/system.slice/memory.max"
  std::optional<std::uint64_t> limit_bytes;
  std::uint64_t used_bytes = 0;  // counts the file cache too, although the kernel could free it
  // Processes of the group that the kernel killed for memory, whichever limit was reached. Only of
  // the process's own group: those around it count the kills of other programs too.
  std::uint64_t oom_kills = 0;
};

// `root`: for tests, the folder below which /proc and /sys are read.
std::vector<MemoryGroup> MemoryGroups(const std::string& root = "");

// It rises when the kernel kills a process of this process's group for memory.
std::uint64_t OomKills(const std::string& root = "");

}  // namespace penstock
