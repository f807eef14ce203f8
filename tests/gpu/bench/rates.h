// Peak rates of the device, measured in the same run as the results that are compared with them.
#pragma once

#include <absl/status/statusor.h>

#include "shard/backend/cuda/gpu.h"

namespace penstock::shard::cuda {

// Bytes per second of a kernel that only reads 4 GiB.
absl::StatusOr<double> ReadBandwidth(Gpu& gpu);

// Bytes per second of a copy on the device, read and written bytes together.
absl::StatusOr<double> CopyBandwidth(Gpu& gpu);

// Floating-point operations per second of a bfloat16 product of 8192 x 8192 matrices of random
// values.
absl::StatusOr<double> ProductRate(Gpu& gpu);

}  // namespace penstock::shard::cuda
