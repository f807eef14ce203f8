#include "shard/executor/free_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>

namespace penstock::shard {
namespace {

std::optional<std::uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // absent, or the word "max"
}

std::optional<std::uint64_t> MemAvailable(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  std::string rest;
  while (file >> name >> kib && std::getline(file, rest)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

// The group's path in the unified hierarchy: the line "0::/path".
std::string ControlGroup(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return "";
}

// `free_bytes`, or less by the limits of the control groups from this one up to the root. A group
// counts its file cache as used, although it could be freed, so the result may be too low.
std::uint64_t BoundByGroups(const std::string& root, std::uint64_t free_bytes) {
  std::string group = ControlGroup(root);
  while (true) {
    const std::string folder = root + "/sys/fs/cgroup" + group;
    const auto limit = ReadNumber(folder + "/memory.max");
    const auto used = ReadNumber(folder + "/memory.current");
    if (limit.has_value() && used.has_value()) {
      free_bytes = std::min(free_bytes, *limit - std::min(*limit, *used));
    }
    if (group.empty() || group == "/") return free_bytes;
    group.resize(group.rfind('/'));
  }
}

}  // namespace

absl::StatusOr<std::uint64_t> FreeMemory(const std::string& root) {
  const auto available = MemAvailable(root);
  if (!available.has_value()) {
    return absl::UnavailableError("/proc/meminfo has no line MemAvailable");
  }
  return BoundByGroups(root, *available);
}

}  // namespace penstock::shard
