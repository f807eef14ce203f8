// How much more memory this process may use: the least of what the machine has (MemAvailable), what
// its control groups allow, and what `ulimit -v` allows.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace penstock::shard {

struct FreeBytes {
  std::uint64_t bytes = 0;
  std::string limit;  // what allows no more: "the machine's memory", "ulimit -v", a file
};

// `root`: for tests, the folder below which /proc and /sys are read.
absl::StatusOr<FreeBytes> FreeMemory(const std::string& root = "");

}  // namespace penstock::shard
