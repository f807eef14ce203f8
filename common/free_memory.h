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

// The memory that the process may take beside what it uses now. For the machine's memory this is
// MemAvailable. `root` is for tests: /proc and /sys are read in this folder.
absl::StatusOr<FreeBytes> FreeMemory(const std::string& root = "");

struct MemoryLimit {
  std::uint64_t bytes = 0;
  std::string name;      // as FreeBytes::limit
  bool was_set = false;  // by a control group or `ulimit -v`, below what the machine has
};

// The memory that the process may take in total. A control group may hold other processes too.
absl::StatusOr<MemoryLimit> LimitOfMemory(const std::string& root = "");

}  // namespace penstock
