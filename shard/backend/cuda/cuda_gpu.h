// A real CUDA device: its runtime, one stream and cuBLASLt. In the CUDA build only.
//
// Threading: one thread, except DeviceQueue::Done, which any thread may call.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "shard/backend/cuda/gpu.h"
#include "shard/backend/cuda/parts.h"
#include "shard/parallel/device_queue.h"

namespace penstock::shard::cuda {

class CudaGpu : public Gpu, public DeviceQueue {
 public:
  // FailedPrecondition if there is no driver or no such device. `index` counts what
  // CUDA_VISIBLE_DEVICES shows.
  static absl::StatusOr<std::unique_ptr<CudaGpu>> Open(int index, const CudaParts& parts = {});

  // "NVIDIA H200, 139.8 GiB".
  virtual std::string Description() const = 0;

  // 16 bytes that no other device has.
  virtual std::string Uuid() const = 0;
  virtual std::uint64_t TotalBytes() const = 0;
};

}  // namespace penstock::shard::cuda
