#include "common/free_memory.h"

#include <fstream>
#include <optional>
#include <string_view>

#include "common/memory_groups.h"

namespace penstock {
namespace {

constexpr char kMachine[] = "the machine's memory";
constexpr char kAddressSpace[] = "ulimit -v";

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

absl::StatusOr<std::uint64_t> ReadMachine(const std::string& root, std::string_view name) {
  const auto kib = ReadField(root + "/proc/meminfo", name);
  if (kib.has_value()) return *kib * 1024;
  return absl::UnavailableError("/proc/meminfo has no line " +
                                std::string(name.substr(0, name.size() - 1)));
}

std::optional<std::uint64_t> AddressSpace(const std::string& root) {
  return ReadField(root + "/proc/self/limits", "Max address space");
}

void Bound(FreeBytes& free, std::uint64_t limit, std::uint64_t used, std::string_view name) {
  const std::uint64_t left = limit > used ? limit - used : 0;
  if (left < free.bytes) free = {left, std::string(name)};
}

}  // namespace

absl::StatusOr<FreeBytes> FreeMemory(const std::string& root) {
  const auto available = ReadMachine(root, "MemAvailable:");
  if (!available.ok()) return available.status();
  FreeBytes free{*available, kMachine};
  for (const MemoryGroup& group : MemoryGroups(root)) {
    if (!group.limit_bytes.has_value()) continue;
    Bound(free, *group.limit_bytes, group.used_bytes, group.limit_file);
  }
  const auto space = AddressSpace(root);
  const auto size_kib = ReadField(root + "/proc/self/status", "VmSize:");
  if (space.has_value() && size_kib.has_value()) {
    Bound(free, *space, *size_kib * 1024, kAddressSpace);
  }
  return free;
}

absl::StatusOr<MemoryLimit> LimitOfMemory(const std::string& root) {
  const auto machine = ReadMachine(root, "MemTotal:");
  if (!machine.ok()) return machine.status();
  FreeBytes most{*machine, kMachine};
  for (const MemoryGroup& group : MemoryGroups(root)) {
    if (group.limit_bytes.has_value()) Bound(most, *group.limit_bytes, 0, group.limit_file);
  }
  if (const auto space = AddressSpace(root)) Bound(most, *space, 0, kAddressSpace);
  return MemoryLimit{most.bytes, most.limit, most.limit != kMachine};
}

}  // namespace penstock
