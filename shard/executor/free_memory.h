// How much memory this process may still take: what the kernel calls available, or less where a
// control group (a container) sets a lower limit.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace penstock::shard {

absl::StatusOr<std::uint64_t> FreeMemory();

// The same, read below another root folder ("" in production).
absl::StatusOr<std::uint64_t> FreeMemoryBelow(const std::string& root);

}  // namespace penstock::shard
