// How much more memory this process may use: MemAvailable of the kernel, or less if a control group
// (a container) has a lower limit.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace penstock::shard {

absl::StatusOr<std::uint64_t> FreeMemory();

// The same with another root folder, for tests.
absl::StatusOr<std::uint64_t> FreeMemoryBelow(const std::string& root);

}  // namespace penstock::shard
