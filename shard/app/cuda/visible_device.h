// Which GPU a rank of this host uses.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace penstock::shard::cuda {

// The one entry that CUDA_VISIBLE_DEVICES must have in the process of this rank. `present` is its
// present value, or null. A single entry comes from the launcher and is kept. Of a list the entry
// at `rank` is used. Without a list it is the device number `rank`. After that the device of the
// rank is number 0 for every thread and library.
absl::StatusOr<std::string> DeviceOfRank(const char* visible_devices, std::uint32_t rank);

}  // namespace penstock::shard::cuda
