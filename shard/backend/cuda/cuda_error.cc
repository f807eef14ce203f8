#include "shard/backend/cuda/cuda_error.h"

#include <string>

namespace penstock::shard::cuda {

absl::Status ToStatus(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  // Else the next launch would be blamed for it.
  cudaGetLastError();
  const std::string text = "cuda: " + std::string(what) + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(text);
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
    return absl::FailedPreconditionError(text);
  }
  return absl::InternalError(text);
}

absl::Status ToStatus(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError("cublasLt: " + std::string(what) + ": " +
                             cublasLtGetStatusString(status));
}

}  // namespace penstock::shard::cuda
