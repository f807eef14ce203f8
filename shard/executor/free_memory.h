// How much more memory this process may use: MemAvailable of the kernel, or less if a control group
// (a container) has a lower limit.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace penstock::shard {

// `root`: for tests, the folder below which /proc and /sys are read.
absl::StatusOr<std::uint64_t> FreeMemory(const std::string& root = "");

}  // namespace penstock::shard
