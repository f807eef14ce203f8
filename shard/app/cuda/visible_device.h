// Which GPU a rank of this host takes.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace penstock::shard::cuda {

// The one entry that CUDA_VISIBLE_DEVICES must have in this rank's process, given its present value
// (null: not set). A single entry is this rank's, as the launcher gives it; of a list it is the one
// at `rank`; without a list it is the device of that number. So the rank's device is always number
// 0, on every thread and for every library.
absl::StatusOr<std::string> DeviceOfRank(const char* visible_devices, std::uint32_t rank);

}  // namespace penstock::shard::cuda
