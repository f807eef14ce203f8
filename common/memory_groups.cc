#include "common/memory_groups.h"

#include <algorithm>
#include <fstream>
#include <string_view>

namespace penstock {
namespace {

struct Hierarchy {
  std::string_view folder;
  std::string_view limit;
  std::string_view used;
  std::string_view events;
};

constexpr Hierarchy kV1 = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                           "/memory.usage_in_bytes", "/memory.oom_control"};
constexpr Hierarchy kV2 = {"/sys/fs/cgroup", "/memory.max", "/memory.current", "/memory.events"};
// With both versions, as systemd mounts them on some distributions.
constexpr Hierarchy kHybridV2 = {"/sys/fs/cgroup/unified", kV2.limit, kV2.used, kV2.events};

std::optional<std::uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // absent, or the word "max"
}

// The value of a line "oom_kill 3".
std::uint64_t ReadOomKills(const std::string& path) {
  std::ifstream file(path);
  std::string name;
  std::uint64_t value = 0;
  while (file >> name >> value) {
    if (name == "oom_kill") return value;
  }
  return 0;
}

// `group`: a path such as "/system.slice/penstock.service". In a container without a namespace of
// its own the path is the host's and absent here; the container's group is then the root.
void AddGroups(const std::string& root, const Hierarchy& hierarchy, std::string group,
               std::vector<MemoryGroup>& groups) {
  const std::size_t own = groups.size();
  while (true) {
    if (group == "/") group.clear();
    const std::string folder = std::string(hierarchy.folder) + group;
    MemoryGroup found{.limit_file = folder + std::string(hierarchy.limit)};
    if (const auto used = ReadNumber(root + folder + std::string(hierarchy.used))) {
      found.limit_bytes = ReadNumber(root + found.limit_file);
      found.used_bytes = *used;
      if (groups.size() == own) {
        found.oom_kills = ReadOomKills(root + folder + std::string(hierarchy.events));
      }
      groups.push_back(std::move(found));
    }
    if (group.empty()) return;
    group.resize(std::min(group.size() - 1, group.rfind('/')));
  }
}

}  // namespace

std::vector<MemoryGroup> MemoryGroups(const std::string& root) {
  std::vector<MemoryGroup> groups;
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  // "4:cpu,memory:/path" in version 1, "0::/path" in version 2.
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers.find(",memory,") != std::string::npos) AddGroups(root, kV1, group, groups);
    if (!line.starts_with("0::")) continue;
    AddGroups(root, kV2, group, groups);
    AddGroups(root, kHybridV2, group, groups);
  }
  return groups;
}

std::uint64_t OomKills(const std::string& root) {
  std::uint64_t kills = 0;
  for (const MemoryGroup& group : MemoryGroups(root)) kills += group.oom_kills;
  return kills;
}

}  // namespace penstock
