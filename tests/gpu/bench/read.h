// The kernel of ReadBandwidth.
#pragma once

#include <cstdint>

#include "shard/backend/cuda/kernels.h"

namespace penstock::shard::cuda {

// Adds up `bytes` of memory, a multiple of 16, into `sink`, so that the loads stay. Enqueued.
absl::Status ReadAll(const void* memory, std::uint64_t bytes, float* sink, Stream stream);

}  // namespace penstock::shard::cuda
