#include "shard/executor/free_memory.h"

#include <fstream>
#include <optional>
#include <string_view>

#include "common/memory_groups.h"

namespace penstock::shard {
namespace {

// The number after `name` at the start of a line; nullopt if it is absent or a word.
std::optional<std::uint64_t> ReadField(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(name)) continue;
    const std::size_t digit = line.find_first_not_of(" \t", name.size());
    if (digit == std::string::npos || line[digit] < '0' || line[digit] > '9') return std::nullopt;
    return std::stoull(line.substr(digit));
  }
  return std::nullopt;
}

void Bound(FreeBytes& free, std::uint64_t limit, std::uint64_t used, std::string_view name) {
  const std::uint64_t left = limit > used ? limit - used : 0;
  if (left < free.bytes) free = {left, std::string(name)};
}

}  // namespace

absl::StatusOr<FreeBytes> FreeMemory(const std::string& root) {
  const auto available = ReadField(root + "/proc/meminfo", "MemAvailable:");
  if (!available.has_value()) {
    return absl::UnavailableError("/proc/meminfo has no line MemAvailable");
  }
  FreeBytes free{*available * 1024, "the machine's memory"};
  for (const MemoryGroup& group : MemoryGroups(root)) {
    if (!group.limit_bytes.has_value()) continue;
    Bound(free, *group.limit_bytes, group.used_bytes, group.limit_file);
  }
  const auto space = ReadField(root + "/proc/self/limits", "Max address space");
  const auto size_kib = ReadField(root + "/proc/self/status", "VmSize:");
  if (space.has_value() && size_kib.has_value()) {
    Bound(free, *space, *size_kib * 1024, "ulimit -v");
  }
  return free;
}

}  // namespace penstock::shard
