// The device of the CUDA backend's tests on a machine with a GPU.
#include <cuda_runtime_api.h>

#include <new>
#include <utility>

#include "shard/backend/cuda/cuda_error.h"
#include "shard/backend/cuda/cuda_gpu.h"
#include "tests/unit/shard/backend/cuda/test_gpu.h"

namespace penstock::shard::cuda {

absl::Status DeviceIsThere() {
  int count = 0;
  return ToStatus(cudaGetDeviceCount(&count), "no GPU can be used");
}

absl::StatusOr<TestDevice> OpenTestDevice() {
  auto gpu = CudaGpu::Open(0);
  if (!gpu.ok()) return gpu.status();
  DeviceQueue* queue = gpu->get();
  return TestDevice{*std::move(gpu), queue};
}

bool IsEmulated() { return false; }
void WorkLate(bool) {}

void* AllocateShared(std::size_t bytes) {
  // Pinned memory, which kernels read through the bus. Managed memory needs page faults of the
  // device, which many virtual machines do not offer.
  void* memory = nullptr;
  if (cudaMallocHost(&memory, bytes + 1) != cudaSuccess) throw std::bad_alloc();
  return memory;
}

void FreeShared(void* memory) { cudaFreeHost(memory); }

absl::Status FinishKernels() { return ToStatus(cudaDeviceSynchronize(), "the kernels"); }

}  // namespace penstock::shard::cuda
