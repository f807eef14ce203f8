// CUDA's error codes as statuses. In the CUDA build only.
#pragma once

#include <absl/status/status.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string_view>

namespace penstock::shard::cuda {

// ResourceExhausted when memory ran out; `what` names what was tried. Clears the thread's last
// error, unless the device is unusable.
absl::Status ToStatus(cudaError_t error, std::string_view what);
absl::Status ToStatus(cublasStatus_t status, std::string_view what);

}  // namespace penstock::shard::cuda
