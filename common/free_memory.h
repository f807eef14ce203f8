// How much memory this process may use: the least of what the machine has, what its control groups
// allow, and what `ulimit -v` allows.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace penstock {

struct FreeBytes {
  std::uint64_t bytes = 0;
  std::string limit;  // what allows no more: "the machine's memory", "ulimit -v", a file
};

// How much more than it uses now. Of the machine it is MemAvailable. `root`: for tests, the folder
// below which /proc and /sys are read.
absl::StatusOr<FreeBytes> FreeMemory(const std::string& root = "");

struct MemoryLimit {
  std::uint64_t bytes = 0;
  std::string name;      // as FreeBytes::limit
  bool was_set = false;  // by a control group or `ulimit -v`, below what the machine has
};

// How much in all. A control group may hold other processes too.
absl::StatusOr<MemoryLimit> LimitOfMemory(const std::string& root = "");

}  // namespace penstock
